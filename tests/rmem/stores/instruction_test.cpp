// SPDX-License-Identifier: Apache-2.0
// ctest: plain apart

/// Each instruction that stores does to a view, its registers and its flags what it does to plain
/// memory. Both are run: the one by the processor, the other by the fault's handler. (All of them,
/// the longer vectors too: instruction_forms_test.cpp. Here are one of each kind, for a quick run,
/// and what needs more than one instruction, a direction or an overlap.)

#include "rmem/stores/instruction.hpp"

#include "rmem/stores/decodings.hpp"
#include "rmem/stores/signal_chain.hpp"
#include "rmem/stores/trapped_view.hpp"
#include "tests/rmem/stores/two_mappings.hpp"

#include <gmock/gmock.h>
#include <setjmp.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)

namespace rmem::test {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kPlace = 512;  ///< where an instruction stores, more or less
constexpr std::uint64_t kArithmeticFlags = 0x8D5;

/// What an instruction finds, and leaves.
struct State {
    std::uint64_t rax = 0, rbx = 0, rcx = 0, rdx = 0, rsi = 0, rdi = 0, flags = 0;
    alignas(64) std::array<std::uint64_t, 24> vectors{};  ///< three registers
};

using Run = void (*)(State&);

struct Snippet {
    const char* text;
    Run run;
};

// Below the red zone, and with the direction flag as the compiler wants it afterwards.
#define RMEM_RUN(load_vectors, text)                                                        \
    {                                                                                       \
        text, [](State& s) {                                                                \
            asm volatile("lea -128(%%rsp), %%rsp\n\t" load_vectors                          \
                         "pushq %[flags]\n\tpopfq\n\t" text                                 \
                         "\n\tpushfq\n\tpopq %[flags]\n\tcld\n\tlea 128(%%rsp), %%rsp"      \
                         : "+a"(s.rax), "+b"(s.rbx), "+c"(s.rcx), "+d"(s.rdx), "+S"(s.rsi), \
                           "+D"(s.rdi), [flags] "+r"(s.flags)                               \
                         : [v] "r"(s.vectors.data())                                        \
                         : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "st", "st(1)");  \
        }                                                                                   \
    }
#define GENERAL(text) RMEM_RUN("", text)
#define SSE(text)                                                                                \
    RMEM_RUN("movups (%[v]), %%xmm0\n\tmovups 64(%[v]), %%xmm1\n\tmovups 128(%[v]), %%xmm2\n\t", \
             text)

const Snippet kMoves[] = {
    GENERAL("movb %%al, (%%rdi)"),
    GENERAL("movb %%ah, 3(%%rdi)"),
    GENERAL("movl %%edx, 5(%%rdi)"),
    GENERAL("movq %%rdx, -8(%%rdi)"),
    GENERAL("movl $0x12345678, (%%rdi,%%rcx,4)"),
    GENERAL("movnti %%rax, 16(%%rdi)"),
    GENERAL("movbe %%rax, 16(%%rdi)"),
    GENERAL("movw %%ds, (%%rdi)"),
    GENERAL("movl $1, (%%rdi)\n\tmovl $2, 4(%%rdi)\n\tmovq %%rax, 8(%%rdi)\n\taddl $3, (%%rdi)"),
};

const Snippet kArithmetic[] = {
    GENERAL("addb %%al, (%%rdi)"),
    GENERAL("adcq %%rax, (%%rdi)"),
    GENERAL("subq %%rdx, (%%rdi)"),
    GENERAL("xorq %%rax, (%%rdi)"),
    GENERAL("incl (%%rdi)"),
    GENERAL("negw (%%rdi)"),
    GENERAL("notq (%%rdi)"),
    GENERAL("lock addl %%eax, (%%rdi)"),
    GENERAL("lock xaddl %%eax, (%%rdi)"),
    GENERAL("xaddb %%dl, (%%rdi)"),
    GENERAL("xchgb %%ah, (%%rdi)"),
    GENERAL("xchgq %%rdx, (%%rdi)"),
    GENERAL("lock cmpxchgl %%edx, (%%rdi)"),
    GENERAL("movl (%%rdi), %%eax\n\tlock cmpxchgl %%edx, (%%rdi)"),
    GENERAL("movb (%%rdi), %%al\n\tcmpxchgb %%dl, (%%rdi)"),
};

const Snippet kStrings[] = {
    GENERAL("stosb"),
    GENERAL("stosl"),
    GENERAL("rep stosb"),
    GENERAL("rep stosw"),
    GENERAL("rep stosq"),
    GENERAL("movsb"),
    GENERAL("movsq"),
    GENERAL("rep movsb"),
    GENERAL("rep movsl"),
    GENERAL("std\n\trep movsb"),
    GENERAL("std\n\trep stosq"),
    GENERAL("lea -1(%%rdi), %%rsi\n\trep movsb"),  // a pattern of one byte
    GENERAL("lea -6(%%rdi), %%rsi\n\trep movsw"),
    GENERAL("lea 3(%%rdi), %%rsi\n\trep movsb"),
};

const Snippet kVectors[] = {
    SSE("movups %%xmm0, (%%rdi)"),
    SSE("movdqu %%xmm2, 5(%%rdi)"),
    SSE("pextrw $5, %%xmm0, (%%rdi)"),
    SSE("maskmovdqu %%xmm1, %%xmm0"),
};

#define ON(condition)                                               \
    GENERAL("movl %%ebx, (%%rdi)\n\tcmpb %%dl, %%al\n\tj" condition \
            " 1f\n\tmovb $1, 5(%%rdi)\n"                            \
            "1:\tmovb %%cl, 9(%%rdi)")
/// Stores, and what stands between them.
const Snippet kRuns[] = {
    GENERAL("incl %%ecx\n1:\tmovl %%eax, (%%rdi)\n\taddq $4, %%rdi\n\taddl $7, %%eax\n\tdecl "
            "%%ecx\n\tjnz 1b"),
    GENERAL("xorl %%ebx, %%ebx\n1:\tmovb %%bl, (%%rdi,%%rbx)\n\tincq %%rbx\n\tcmpq $600, %%rbx\n\t"
            "jb 1b"),
    // As a compiler leaves it that does not optimize: all is on the stack.
    GENERAL("movl $3, -4(%%rsp)\n\tjmp 2f\n1:\tmovl -4(%%rsp), %%eax\n\tcltq\n\tleaq "
            "0(,%%rax,4), %%rdx\n\tmovq %%rdi, %%rax\n\taddq %%rdx, %%rax\n\tmovl -4(%%rsp), "
            "%%edx\n\tmovl %%edx, (%%rax)\n\taddl $1, -4(%%rsp)\n2:\tcmpl $90, -4(%%rsp)\n\t"
            "jle 1b\n\txorl %%eax, %%eax"),
    // A copy by words, and one by vectors, where they lie at multiples of their size and elsewhere.
    GENERAL("xorl %%edx, %%edx\n1:\tmovl (%%rsi,%%rdx,4), %%eax\n\tmovl %%eax, (%%rdi,%%rdx,4)\n\t"
            "addl $1, %%edx\n\tcmpl $20, %%edx\n\tjne 1b"),
    SSE("movq %[v], %%rsi\n\tmovl $4, %%ecx\n1:\tmovups (%%rsi), %%xmm0\n\tmovups 16(%%rsi), "
        "%%xmm1\n\tmovups %%xmm0, (%%rdi)\n\tmovups %%xmm1, 16(%%rdi)\n\taddq $8, %%rsi\n\taddq "
        "$32, "
        "%%rdi\n\tsubl $1, %%ecx\n\tjg 1b\n\txorl %%esi, %%esi"),
    GENERAL("movl %%eax, (%%rdi)\n\tleaq 8(%%rax,%%rcx,2), %%rbx\n\tmovzbl %%al, %%edx\n\tcmovcq "
            "%%rbx, %%rax\n\tsete %%dh\n\tbswap %%ecx\n\tmovl %%edx, 4(%%rdi)"),
    GENERAL(
        "movl %%eax, (%%rdi)\n\tmovzbl %%al, %%eax\n\torl $1, %%ebx\n\tdivb %%bl\n\tmovl %%eax, "
        "4(%%rdi)"),
    GENERAL("movl %%eax, (%%rdi)\n\tmovl (%%rdi), %%edx\n\tmovl %%edx, 8(%%rdi)"),
    GENERAL("movl %%eax, (%%rdi)\n\tleaq 1f(%%rip), %%rbx\n1:\tmovl %%eax, 4(%%rdi)\n\tleaq "
            "1b(%%rip), %%rcx\n\tsubq %%rcx, %%rbx\n\tmovq %%rbx, 8(%%rdi)\n\txorl %%ecx, %%ecx"),
    GENERAL("movl %%eax, (%%rdi)\n\tcall 1f\n\tmovl %%edx, 8(%%rdi)\n\tjmp 2f\n1:\tmovl %%edx, "
            "4(%%rdi)\n\tret\n2:"),
    GENERAL("pushq %%rdi\n\tmovl %%eax, (%%rdi)\n\txorl %%edi, %%edi\n\tpopq %%rdi\n\tmovl %%eax, "
            "8(%%rdi)"),
    ON("o"),
    ON("no"),
    ON("b"),
    ON("ae"),
    ON("e"),
    ON("ne"),
    ON("be"),
    ON("a"),
    ON("s"),
    ON("ns"),
    ON("p"),
    ON("np"),
    ON("l"),
    ON("ge"),
    ON("le"),
    ON("g"),
};

const Snippet kOthers[] = {
    GENERAL("shll $3, (%%rdi)"),
    GENERAL("rolb $1, (%%rdi)"),
    GENERAL("shldl $7, %%edx, (%%rdi)"),
    GENERAL("btsl $5, (%%rdi)"),
    GENERAL("shll $6, %%ecx\n\tbtsl %%ecx, (%%rdi)"),
    GENERAL("lock btrq $9, (%%rdi)"),
    GENERAL("lock cmpxchg8b (%%rdi)"),
    GENERAL("lock cmpxchg16b (%%rdi)"),
    GENERAL("pushq %%rax\n\tpopq (%%rdi)"),
    GENERAL("fldpi\n\tfstpt (%%rdi)"),
    GENERAL("stmxcsr (%%rdi)"),
    GENERAL("movl %%eax, %%ebx\n\tshll $1, (%%rdi,%%rcx,4)\n\tsetz %%bl"),
};

class Instructions : public ::testing::Test {
protected:
    /// Which finds its place in rdi.
    State at_place() const {
        State state;
        state.rdi = reinterpret_cast<std::uint64_t>(memory_.view().data()) + kPlace;
        return state;
    }
    void check(std::span<const Snippet> snippets) {
        for (const Snippet& snippet : snippets) {
            for (unsigned time = 0; time < 24; ++time) check(snippet);
        }
    }

    void check(const Snippet& snippet) {
        alignas(64) std::array<std::byte, TwoMappings::kBytes> plain;
        for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = std::byte(random_());
        std::memcpy(memory_.bank(), plain.data(), plain.size());

        State before;
        before.rax = random_();
        before.rbx = random_();
        before.rdx = random_();
        before.rcx = random_() % 9;
        before.flags = 0x202 | (random_() & kArithmeticFlags);
        for (auto& part : before.vectors) part = random_();
        State on_plain = before, on_view = before;
        on_plain.rdi = reinterpret_cast<std::uint64_t>(plain.data()) + kPlace;
        on_view.rdi = reinterpret_cast<std::uint64_t>(memory_.view().data()) + kPlace;
        // Strings come from elsewhere.
        on_plain.rsi = on_view.rsi = reinterpret_cast<std::uint64_t>(source_.data()) + 256;

        snippet.run(on_plain);
        snippet.run(on_view);
        SCOPED_TRACE(snippet.text);
        EXPECT_EQ(std::memcmp(plain.data(), memory_.bank(), plain.size()), 0);
        EXPECT_EQ(on_plain.rax, on_view.rax);
        EXPECT_EQ(on_plain.rbx, on_view.rbx);
        EXPECT_EQ(on_plain.rcx, on_view.rcx);
        EXPECT_EQ(on_plain.rdx, on_view.rdx);
        EXPECT_EQ(on_plain.flags & kArithmeticFlags, on_view.flags & kArithmeticFlags);
        const auto moved = [&](std::uint64_t address, const void* base) {
            const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(base);
            return offset < plain.size() ? offset : address;
        };
        EXPECT_EQ(moved(on_plain.rdi, plain.data()), moved(on_view.rdi, memory_.view().data()));
        EXPECT_EQ(moved(on_plain.rsi, plain.data()), moved(on_view.rsi, memory_.view().data()));
        const auto taken = taker_.taken();
        for (const Taken& one : taken) EXPECT_LE(one.offset + one.bytes, TwoMappings::kBytes);
    }

    TwoMappings memory_;
    StoringTaker taker_{memory_.bank()};
    stores::TrappedView view_{memory_.view(), memory_.bank(), taker_};
    std::array<std::byte, 512> source_ = [] {
        std::array<std::byte, 512> bytes;
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 7);
        return bytes;
    }();
    std::mt19937_64 random_{20};
};

TEST_F(Instructions, moves_store_what_the_processor_would) {
    check(kMoves);
}
TEST_F(Instructions, arithmetic_on_memory_has_its_result_and_its_flags) {
    check(kArithmetic);
}
TEST_F(Instructions, strings_are_copied_and_filled_in_both_directions) {
    check(kStrings);
}
TEST_F(Instructions, vectors_and_their_parts_are_stored) {
    check(kVectors);
}
TEST_F(Instructions, what_stands_between_stores_is_done_as_well) {
    check(kRuns);
}
TEST_F(Instructions, a_run_of_stores_costs_few_faults) {
    for (const unsigned which : {1U, 2U}) {
        State s = at_place();
        taker_.begun = 0;
        kRuns[which].run(s);
        const std::size_t stores = taker_.taken().size();
        EXPECT_GE(stores, 88U);
        EXPECT_LE(taker_.begun, 1 + stores / 200) << kRuns[which].text;
    }
}
const Snippet kReads =
    GENERAL("movl %%eax, (%%rdi)\n\tmovl (%%rdi), %%edx\n\tmovl %%edx, 8(%%rdi)");
TEST_F(Instructions, a_run_ends_where_the_memory_is_read) {
    State state = at_place();
    taker_.begun = 0;
    kReads.run(state);
    EXPECT_EQ(taker_.begun, 2U) << "it may wait for somebody";
}
TEST_F(Instructions, two_threads_that_wait_for_each_others_stores_go_on) {
    auto* const words = reinterpret_cast<volatile std::uint32_t*>(memory_.view().data());
    constexpr std::uint32_t kRounds = 300;
    constexpr unsigned kPatience = 100'000;
    const auto await = [words](unsigned word, std::uint32_t value) {
        for (unsigned looks = 1; words[word] != value; ++looks) {
            if (looks % kPatience == 0) std::this_thread::yield();
        }
    };
    std::thread other([&] {
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            await(0, round);
            words[64] = round;
        }
    });
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
        words[0] = round;
        await(64, round);
    }
    other.join();
    EXPECT_EQ(words[64], kRounds);
}
/// What follows a store, and fails.
sigjmp_buf behind_the_fault;
TEST_F(Instructions, what_fails_behind_a_store_is_the_programs_own_fault) {
    const auto jump = [](int) { siglongjmp(behind_the_fault, 1); };
    const SignalHandler on_division(SIGFPE, jump), on_memory(SIGSEGV, jump);
    const stores::TrappedView looks_first(memory_.view().first(0), memory_.bank(), taker_);
    const Snippet faults[] = {
        GENERAL("movl %%eax, (%%rdi)\n\txorl %%ebx, %%ebx\n\tdivb %%bl\n\tmovl %%eax, 4(%%rdi)"),
        GENERAL("movl %%eax, (%%rdi)\n\tmovl 16, %%ebx\n\tmovl %%eax, 4(%%rdi)"),
        GENERAL("movl %%eax, (%%rdi)\n\tmovl %%ebx, 16\n\tmovl %%eax, 4(%%rdi)"),
        GENERAL("movl %%eax, (%%rdi)\n\tmovl %%ebx, (%%rsi)\n\tmovl %%eax, 4(%%rdi)"),
        SSE("movl %%eax, (%%rdi)\n\tmovaps 4(%%rsi), %%xmm0\n\tmovl %%eax, 4(%%rdi)"),
    };
    void* const constant = ::mmap(nullptr, 64, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(constant, MAP_FAILED);
    for (const Snippet& snippet : faults) {
        State s = at_place();
        s.rsi = reinterpret_cast<std::uint64_t>(constant);
        if (sigsetjmp(behind_the_fault, 1) == 0) {
            snippet.run(s);
            ADD_FAILURE() << snippet.text;
        }
        EXPECT_THAT(taker_.taken(), ElementsAre(Taken{kPlace, 4})) << snippet.text;
    }
    ::munmap(constant, 64);
}
TEST_F(Instructions, shifts_bits_x87_and_long_exchanges_are_performed) {
    check(kOthers);
}

TEST_F(Instructions, a_store_is_taken_as_it_is_and_nothing_beside_it) {
    State s = at_place();
    kMoves[0].run(s);    // movb
    kMoves[2].run(s);    // movl, at 5
    kVectors[0].run(s);  // 16 bytes
    kOthers[0].run(s);   // a shift of a word
    EXPECT_THAT(taker_.taken(), ElementsAre(Taken{kPlace, 1}, Taken{kPlace + 5, 4},
                                            Taken{kPlace, 16}, Taken{kPlace, 4}));
}

TEST_F(Instructions, a_store_of_the_same_value_is_a_store) {
    State s = at_place();
    s.rax = 5;
    kMoves[0].run(s);
    kMoves[0].run(s);
    EXPECT_EQ(taker_.taken().size(), 2U);
    s.vectors[8] = s.vectors[9] = ~std::uint64_t{0};
    for (int time = 0; time < 2; ++time) {
        kVectors[3].run(s);  // with a mask
        EXPECT_THAT(taker_.taken(), ElementsAre(Taken{kPlace, 16}));
    }
}

TEST_F(Instructions, an_exchange_that_fails_is_no_store) {
    State state = at_place();
    state.rax = 1;
    const Snippet exchange = GENERAL("lock cmpxchgl %%edx, (%%rdi)");
    exchange.run(state);
    EXPECT_TRUE(taker_.taken().empty());
    EXPECT_EQ(state.rax, 0U);
}

TEST_F(Instructions, an_address_of_32_bits_has_no_more_of_its_register) {
    void* const low = ::mmap(nullptr, TwoMappings::kBytes, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    ASSERT_NE(low, MAP_FAILED);
    const stores::TrappedView view({static_cast<const std::byte*>(low), TwoMappings::kBytes},
                                   memory_.bank(), taker_);
    State state;
    state.rdi = reinterpret_cast<std::uint64_t>(low) + kPlace + (std::uint64_t{3} << 32);
    const Snippet store = GENERAL("movl %%eax, (%%edi)");
    store.run(state);
    EXPECT_THAT(taker_.taken(), ElementsAre(Taken{kPlace, 4}));
    ::munmap(low, TwoMappings::kBytes);
}

TEST_F(Instructions, a_string_that_leaves_the_view_is_taken_as_far_as_it_is_inside) {
    // Behind the view another page is mapped, which can be written.
    void* const both = ::mmap(nullptr, 2 * TwoMappings::kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(both, MAP_FAILED);
    ASSERT_EQ(::mprotect(both, TwoMappings::kBytes, PROT_READ), 0);
    auto* const view = static_cast<std::byte*>(both);
    StoringTaker taker(memory_.bank());
    const stores::TrappedView second({view, TwoMappings::kBytes}, memory_.bank(), taker);
    State s;
    s.rdi = reinterpret_cast<std::uint64_t>(view + TwoMappings::kBytes - 100);
    s.rcx = 300;
    s.rax = 0x5A;
    kStrings[2].run(s);  // rep stosb
    EXPECT_EQ(s.rcx, 0U);
    EXPECT_EQ(memory_.bank()[TwoMappings::kBytes - 1], std::byte{0x5A});
    EXPECT_EQ(view[TwoMappings::kBytes + 199], std::byte{0x5A});
    EXPECT_EQ(view[TwoMappings::kBytes + 200], std::byte{0});
    std::size_t taken = 0;
    for (const Taken& one : taker.taken()) taken += one.bytes;
    EXPECT_EQ(taken, 100U);
    ::munmap(both, 2 * TwoMappings::kBytes);
}

/// For an instruction that this processor may not have.
class Noted final : public stores::Destination {
public:
    bool covers(std::uint64_t address, std::size_t bytes) const noexcept override {
        return address >= 4096 && address + bytes <= 8192;
    }
    void store(std::uint64_t address, const void* from, std::size_t bytes) noexcept override {
        stored.emplace_back(address, std::string(static_cast<const char*>(from), bytes));
    }
    bool can_read(std::uint64_t, std::size_t) const noexcept override { return false; }
    bool read(std::uint64_t, void*, std::size_t) const noexcept override { return false; }

    std::vector<std::pair<std::uint64_t, std::string>> stored;
};

TEST_F(Instructions, a_line_is_cleared) {
    constexpr std::array clzero = {std::byte{0x0F}, std::byte{0x01}, std::byte{0xFC}};
    Noted noted;
    stores::Slot slot;
    stores::Decodings decodings;
    stores::Registers registers;
    registers.next = 100;
    registers.general[0] = 4096 + 130;
    const auto* const decoded = decodings.at(registers.next, clzero);
    ASSERT_NE(decoded, nullptr);
    EXPECT_EQ(stores::perform(*decoded, false, registers, noted, slot, 0),
              stores::Outcome::performed);
    EXPECT_THAT(noted.stored, ElementsAre(std::pair{4096 + 128UL, std::string(64, '\0')}));
    EXPECT_EQ(registers.next, 103U);
    registers.general[0] = 8192;
    EXPECT_EQ(stores::perform(*decoded, false, registers, noted, slot, 0),
              stores::Outcome::unknown);
}

TEST_F(Instructions, the_library_copies_and_fills_through_a_view) {
    std::vector<std::byte> from(6000, std::byte{3});
    for (const std::size_t bytes : {1U, 7U, 16U, 33U, 100U, 257U, 1000U, 4096U, 6000U}) {
        std::memcpy(memory_.view().data() + 65, from.data(), bytes);
        EXPECT_EQ(std::memcmp(memory_.bank() + 65, from.data(), bytes), 0) << bytes;
        std::memset(memory_.view().data() + 65, 9, bytes);
        for (std::size_t i = 0; i < bytes; ++i)
            ASSERT_EQ(memory_.bank()[65 + i], std::byte{9}) << bytes;
        std::memmove(memory_.view().data() + 70, memory_.view().data() + 65, bytes);
    }
}

}  // namespace
}  // namespace rmem::test

#endif
