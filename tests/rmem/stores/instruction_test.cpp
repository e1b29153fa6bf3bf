// SPDX-License-Identifier: Apache-2.0
// ctest: plain apart

/// Each instruction that stores does to a view, its registers and its flags what it does to plain
/// memory. Both are run: the one by the processor, the other by the fault's handler. (All of them,
/// the longer vectors too: instruction_forms_test.cpp. Here are one of each kind, for a quick run,
/// and what needs more than one instruction, a direction or an overlap.)

#include "rmem/stores/instruction.hpp"

#include "rmem/stores/trapped_view.hpp"
#include "tests/rmem/stores/two_mappings.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
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
    bool read(std::uint64_t, void*, std::size_t) const noexcept override { return false; }

    std::vector<std::pair<std::uint64_t, std::string>> stored;
};

TEST_F(Instructions, a_line_is_cleared) {
    constexpr std::array clzero = {std::byte{0x0F}, std::byte{0x01}, std::byte{0xFC}};
    Noted noted;
    stores::Slot slot;
    stores::Registers registers;
    registers.next = 100;
    registers.general[0] = 4096 + 130;
    EXPECT_EQ(stores::perform(clzero, false, registers, noted, slot, 0),
              stores::Outcome::performed);
    EXPECT_THAT(noted.stored, ElementsAre(std::pair{4096 + 128UL, std::string(64, '\0')}));
    EXPECT_EQ(registers.next, 103U);
    registers.general[0] = 8192;
    EXPECT_EQ(stores::perform(clzero, false, registers, noted, slot, 0), stores::Outcome::unknown);
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
