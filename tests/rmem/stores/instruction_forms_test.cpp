// SPDX-License-Identifier: Apache-2.0
// ctest: check plain

/// All instructions that store, as far as the decoder knows them and this processor has them: each
/// does to a captured memory, on both nodes of a ring, and to the registers what it does to plain
/// memory.
///
/// The instructions are found by decoding all that there may be: every opcode of every map, with
/// every mandatory prefix, width and length. Those that this processor lacks, and those that only a
/// kernel may execute, fault on plain memory; they are counted, and named in the output.

#include "rmem/rmem.h"
#include "rmem/stores/slot.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#if defined(__x86_64__)

#include <Zydis/Zydis.h>
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rmem::test {
namespace {

using stores::ImageUse;
using stores::Registers;
using stores::Slot;
using Code = std::vector<unsigned char>;

constexpr std::size_t kBytes = 65536;
constexpr std::size_t kPlace = 4096 + 64 * 17;  ///< where they store, more or less
constexpr unsigned kRax = 0, kRcx = 1, kRsp = 4, kRsi = 6, kRdi = 7;

unsigned char byte_of(unsigned value) {
    return static_cast<unsigned char>(value);
}

// ---- Which instructions there are

struct Form {
    Code code;
    std::string name;
    unsigned by = kRdi;           ///< the register that holds the address
    std::size_t address_at = 0;   ///< where the code itself holds it; 0: nowhere
    std::size_t align = 1;        ///< that it may need
    bool is_bit_test = false;     ///< whose register may lead far away
    bool has_index = false;       ///< in rcx
    bool may_take_stack = false;  ///< what it finds may become the stack pointer
};

class Forms {
public:
    Forms() {
        ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        const Code none, operand_size{0x66}, repeat{0xF3}, repeat_not{0xF2};
        for (const Code& prefix : {none, operand_size, repeat, repeat_not}) {
            for (const unsigned char rex : Code{0x00, 0x40, 0x48, 0x4C}) {
                Code begin = prefix;
                if (rex != 0) begin.push_back(rex);
                for (const Code& map : {none, Code{0x0F}, Code{0x0F, 0x38}, Code{0x0F, 0x3A}})
                    add_map(joined(begin, map));
            }
        }
        add({0x0F, 0x01, 0xFC}, 0);                   // CLZERO, which names no place
        for (unsigned rest = 0; rest < 16; ++rest) {  // vvvv = 1111, as where there is none
            for (const unsigned vvvv : {0x78U, 0x40U}) {
                const unsigned char last = byte_of((rest & 7) | vvvv | (rest & 8) << 4);
                for (unsigned map = 1; map <= 3; ++map) {
                    const auto first = byte_of(0xE0 | map);
                    add_map({0xC4, first, last});
                    if (rest < 16) add_map({0x8F, byte_of(0xE7 + map), last});
                }
            }
        }
        for (unsigned map = 1; map <= 6; ++map) {
            for (unsigned pp = 0; pp < 4; ++pp) {
                for (const unsigned wide : {0x7CU, 0xFCU}) {
                    for (const unsigned char length : Code{0x08, 0x28, 0x48, 0x09, 0x29, 0x49}) {
                        add_map({0x62, byte_of(0xF0 | map), byte_of(wide | pp), length});
                    }
                }
            }
        }
    }

    const std::vector<Form>& all() const { return forms_; }

private:
    static Code joined(Code code, const Code& more) {
        code.insert(code.end(), more.begin(), more.end());
        return code;
    }

    void add_map(const Code& begin) {
        for (unsigned opcode = 0; opcode < 256; ++opcode) {
            for (unsigned reg = 0; reg < 8; ++reg) {
                for (const Code& address : {Code{0x07}, Code{0x04, 0x0F}}) {  // (%rdi), (%rdi,%rcx)
                    Code code = begin;
                    code.push_back(byte_of(opcode));
                    code.push_back(byte_of(address[0] | reg << 3));
                    code.insert(code.end(), address.begin() + 1, address.end());
                    code.resize(15, 0x05);
                    add(code, reg);
                }
            }
        }
    }

    void add(Code code, unsigned reg) {
        ZydisDecodedInstruction in;
        std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
        if (!ZYAN_SUCCESS(
                ZydisDecoderDecodeFull(&decoder_, code.data(), code.size(), &in, operands.data())))
            return;
        const ZydisDecodedOperand* place = nullptr;
        std::string sizes;
        for (std::size_t i = 0; i < in.operand_count; ++i) {
            const ZydisDecodedOperand& one = operands[i];
            sizes += std::to_string(one.size) + '/' + std::to_string(one.element_size) + ' ';
            if (one.type == ZYDIS_OPERAND_TYPE_MEMORY && place == nullptr &&
                (one.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0)
                place = &one;
        }
        const bool is_clear = in.mnemonic == ZYDIS_MNEMONIC_CLZERO;
        if (place == nullptr && !is_clear) return;
        if (place != nullptr && place->mem.base == ZYDIS_REGISTER_RSP) return;  // push and its like
        if (place != nullptr && place->mem.base == ZYDIS_REGISTER_RIP) return;
        const bool is_bit_test = in.mnemonic == ZYDIS_MNEMONIC_BTS ||
                                 in.mnemonic == ZYDIS_MNEMONIC_BTR ||
                                 in.mnemonic == ZYDIS_MNEMONIC_BTC;
        if (is_bit_test && reg == 4) return;  // by the stack pointer: far away
        // One of each kind; of the registers that it may store one more, which is ah or rsp.
        const bool has_sib = in.raw.sib.offset != 0;
        const bool is_vector_index = place != nullptr && place->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
        const bool is_other = reg == 4 && !is_vector_index && in.operand_count > 1;
        const Kind kind{in.mnemonic,
                        in.encoding,
                        in.opcode_map,
                        in.opcode,
                        sizes,
                        in.attributes & ~std::uint64_t{ZYDIS_ATTRIB_HAS_REX},
                        has_sib,
                        static_cast<int>(in.avx.mask.mode),
                        is_other ? operands[1].reg.value : ZYDIS_REGISTER_NONE};
        if (!seen_.insert(kind).second) return;
        Form form;
        form.name = ZydisMnemonicGetString(in.mnemonic);
        code.resize(in.length);
        if (is_clear) {
            form.by = kRax;
        } else if (place->mem.base == ZYDIS_REGISTER_NONE) {
            form.address_at = in.raw.disp.offset;
        } else {
            form.by = static_cast<unsigned>(ZydisRegisterGetId(place->mem.base));
        }
        form.is_bit_test = is_bit_test;
        form.has_index = has_sib;
        form.may_take_stack = is_other;
        form.code = code;
        for (const unsigned char byte : code) {
            constexpr const char* kDigits = "0123456789abcdef";
            form.name += {' ', kDigits[byte >> 4], kDigits[byte & 15]};
        }
        forms_.push_back(form);
        if ((in.attributes & ZYDIS_ATTRIB_ACCEPTS_LOCK) == 0) return;
        form.code.insert(form.code.begin(), 0xF0);
        form.name = "lock " + form.name;
        forms_.push_back(form);
    }

    using Kind = std::tuple<ZydisMnemonic, ZydisInstructionEncoding, ZydisOpcodeMap, unsigned char,
                            std::string, std::uint64_t, bool, int, ZydisRegister>;
    ZydisDecoder decoder_;
    std::set<Kind> seen_;
    std::vector<Form> forms_;
};

// ---- Executing them

sigjmp_buf back_from_forms;
volatile int raised = 0;

/// An instruction that may not be, or is not there, is left.
class Faults {
public:
    Faults() {
        struct sigaction action {};
        action.sa_handler = [](int signal) {
            raised = signal;
            ::siglongjmp(back_from_forms, 1);
        };
        action.sa_flags = SA_ONSTACK;
        for (std::size_t i = 0; i < kSignals.size(); ++i)
            ::sigaction(kSignals[i], &action, &before_[i]);
    }
    ~Faults() {
        for (std::size_t i = 0; i < kSignals.size(); ++i)
            ::sigaction(kSignals[i], &before_[i], nullptr);
    }
    Faults(const Faults&) = delete;
    Faults& operator=(const Faults&) = delete;

private:
    static constexpr std::array kSignals = {SIGSEGV, SIGILL, SIGBUS, SIGFPE, SIGTRAP};
    std::array<struct sigaction, kSignals.size()> before_{};
};

/// All registers of a program.
struct State {
    Registers registers;
    alignas(64) std::array<std::byte, Slot::kStageBytes> image{};
};

/// What is not to be compared: where the last x87 instruction was, and its operand.
void forget_places(State& state) {
    std::memset(state.image.data() + 6, 0, 18);
}

class Machine {
public:
    Machine() {
        unsigned low = 1, high = 0;
        if (has_xsave()) asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        // Tiles have a test of their own.
        parts_ = has_xsave() ? (low | std::uint64_t{high} << 32) & 0xE7 : 0;
    }

    /// The parts of the image that all instructions find filled.
    std::uint64_t parts() const { return parts_; }

    void fill(State& state, std::mt19937_64& random) const {
        for (auto& reg : state.registers.general) reg = random();
        for (const unsigned from : {kRsi, kRdi})
            state.registers.general[from] = reinterpret_cast<std::uint64_t>(source_.data()) + 256;
        state.registers.general[kRsp] =
            reinterpret_cast<std::uint64_t>(stack_.data() + stack_.size() - 4096) & ~63ULL;
        state.registers.flags = random() & 0x8D5;
        state.registers.parts = parts_;
        auto* const image = state.image.data();
        for (std::size_t i = 0; i < state.image.size(); i += 8) {
            const std::uint64_t part = random();
            std::memcpy(image + i, &part, 8);
        }
        std::memset(image, 0, 32);
        image[0] = std::byte{0x7F}, image[1] = std::byte{0x03};
        image[3] = std::byte{0x18};  // the top of the stack is the fourth register…
        image[4] = std::byte{0xF8};  // …of five that are in use
        image[24] = std::byte{0x80}, image[25] = std::byte{0x1F};
        for (unsigned i = 0; i < 8; ++i) {  // numbers, as x87 has them
            image[32 + 16 * i + 7] |= std::byte{0x80};
            image[32 + 16 * i + 8] = static_cast<std::byte>(i * 3),
                                image[32 + 16 * i + 9] = std::byte{0x40};
            std::memset(image + 32 + 16 * i + 10, 0, 6);
        }
        std::memset(image + 512, 0, 64);
        std::memcpy(image + 512, &parts_, sizeof parts_);
        // Indices of scatters: words and long words alike.
        std::uint32_t unused = 0, upper_at = 0, longest_at = 0, bytes = 0;
        __get_cpuid_count(0xD, 2, &bytes, &upper_at, &unused, &unused);
        __get_cpuid_count(0xD, 6, &bytes, &longest_at, &unused, &unused);
        const auto index = [&](std::size_t at, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                const std::uint64_t value = random() % 512;
                std::memcpy(image + at + 8 * i, &value, sizeof value);
            }
        };
        index(160 + 16, 2);
        if ((parts_ & 4) != 0) index(upper_at + 16, 2);
        if ((parts_ & 0x40) != 0) index(longest_at + 32, 4);
    }

    /// With the address in its register, or in the code. False: it has raised a signal.
    bool run(const Form& form, std::uint64_t address, State& state) {
        Code code = form.code;
        if (form.address_at != 0)
            std::memcpy(code.data() + form.address_at, &address, sizeof address);
        else
            state.registers.general[form.by] = address;
        state.registers.image = state.image.data();
        raised = 0;
        if (::sigsetjmp(back_from_forms, 1) != 0) {
            asm volatile("fninit\n\tcld");
            const unsigned usual = 0x1F80;
            asm volatile("ldmxcsr %0" ::"m"(usual));
            return false;
        }
        slot_.run(0, std::as_bytes(std::span(code)), state.registers, ImageUse::change);
        forget_places(state);
        return true;
    }

private:
    static bool has_xsave() {
        unsigned a = 0, b = 0, c = 0, d = 0;
        __get_cpuid(1, &a, &b, &c, &d);
        return (c & bit_OSXSAVE) != 0;
    }

    Slot slot_;
    std::uint64_t parts_ = 0;
    std::vector<std::byte> stack_ = std::vector<std::byte>(std::size_t{1} << 17, std::byte{0x77});
    std::vector<std::byte> source_ = std::vector<std::byte>(1024, std::byte{0x3C});
};

/// Two nodes, of which the first has its stores captured, and a memory that is nothing special.
class TwoBanks {
public:
    TwoBanks() {
        void* stores = nullptr;
        EXPECT_EQ(rmem_stores(nodes_[0], RMEM_STORES_EXACT, &stores), RMEM_OK) << rmem_last_error();
        view_ = static_cast<std::byte*>(stores);
        std::mt19937_64 random{7};
        for (auto& byte : plain_) byte = static_cast<std::byte>(random());
        EXPECT_EQ(rmem_write(nodes_[0], 0, plain_.data(), plain_.size()), RMEM_OK);
    }
    ~TwoBanks() {
        for (rmem_node* node : nodes_) rmem_close(node);
    }
    TwoBanks(const TwoBanks&) = delete;
    TwoBanks& operator=(const TwoBanks&) = delete;

    std::byte* view() const { return view_; }
    std::byte* plain() { return plain_.data(); }
    /// Nothing, or where the first difference is.
    std::string difference() {
        if (rmem_flush(nodes_[0], kPatienceNs) != RMEM_OK) return rmem_last_error();
        for (unsigned node = 0; node < 2; ++node) {
            const auto* const bank = static_cast<const std::byte*>(rmem_bank(nodes_[node]));
            if (std::memcmp(bank, plain_.data(), kBytes) == 0) continue;
            for (std::size_t at = 0; at < kBytes; at += 4) {
                if (std::memcmp(bank + at, plain_.data() + at, 4) != 0)
                    return "node " + std::to_string(node) + " at " + std::to_string(at);
            }
        }
        return "";
    }
    /// Places that can be: some processors return from a signal to no other stack pointer.
    void put_address(std::size_t at, std::uint64_t address) {
        std::memcpy(plain() + at, &address, sizeof address);
        std::memcpy(view() + at, &address, sizeof address);
    }
    /// After a difference.
    void level() { std::memcpy(plain_.data(), view_, plain_.size()); }

private:
    rmem_node* open(int node) {
        rmem_options options = RMEM_OPTIONS;
        options.ring = name_.get().c_str();
        options.link = "ring";
        options.node = node;
        options.nodes = 2;
        options.memory_bytes = kBytes;
        rmem_node* opened = nullptr;
        EXPECT_EQ(rmem_open_with(&opened, &options), RMEM_OK) << rmem_last_error();
        return opened;
    }

    RingName name_;
    std::array<rmem_node*, 2> nodes_ = {open(0), open(1)};
    std::byte* view_ = nullptr;
    alignas(4096) std::array<std::byte, kBytes> plain_;
};

/// What differs after the two, but for the addresses themselves.
std::string difference(const State& on_plain, const State& on_view, std::uint64_t plain,
                       std::uint64_t view) {
    std::string different;
    for (unsigned i = 0; i < 16; ++i) {
        std::uint64_t one = on_plain.registers.general[i], other = on_view.registers.general[i];
        if (one - plain < kBytes && other - view < kBytes) one -= plain, other -= view;
        if (one != other) different += " register " + std::to_string(i);
    }
    if (((on_plain.registers.flags ^ on_view.registers.flags) & 0x8D5) != 0) different += " flags";
    for (std::size_t at = 0; at < on_plain.image.size(); ++at) {
        if (on_plain.image[at] != on_view.image[at])
            return different + " image at " + std::to_string(at);
    }
    return different;
}

TEST(InstructionForms, each_one_does_to_both_banks_what_it_does_to_plain_memory) {
    const Forms forms;
    const Faults faults;
    TwoBanks banks;
    Machine machine;
    const auto plain = reinterpret_cast<std::uint64_t>(banks.plain());
    const auto view = reinterpret_cast<std::uint64_t>(banks.view());
    std::mt19937_64 random{38};
    std::map<int, std::set<std::string>> left_out;
    std::size_t compared = 0;
    static State before, on_plain, on_view;
    for (const Form& form : forms.all()) {
        for (unsigned time = 0; time < 2; ++time) {
            // The second time it is not aligned, and may cross a page.
            const std::uint64_t place = time == 0 ? kPlace : 8192 - random() % 40;
            machine.fill(before, random);
            before.registers.general[kRcx] = time == 0 ? 64 * (random() % 3) : random() % 9;
            if (form.is_bit_test) {  // some bytes away, to both sides
                for (auto& reg : before.registers.general) {
                    if (&reg != &before.registers.general[kRsp]) reg = random() % 8000 - 4000;
                }
            }
            const std::uint64_t index = form.has_index ? before.registers.general[kRcx] : 0;
            if (form.may_take_stack)
                banks.put_address(place + index, before.registers.general[kRsp]);
            on_plain = before;
            on_view = before;
            if (!machine.run(form, plain + place, on_plain)) {
                if (time == 0) left_out[static_cast<int>(raised)].insert(form.name);
                break;
            }
            ASSERT_TRUE(machine.run(form, view + place, on_view))
                << form.name << " raised signal " << raised;
            ++compared;
            EXPECT_EQ(difference(on_plain, on_view, plain, view), "") << form.name;
            const std::string in_memory = banks.difference();
            EXPECT_EQ(in_memory, "") << form.name;
            if (!in_memory.empty()) banks.level();
        }
    }
    EXPECT_GT(compared, 500U);
    std::printf("%zu forms, %zu executions compared\n", forms.all().size(), compared);
    for (const auto& [signal, names] : left_out) {
        std::printf("%zu forms raise '%s' on plain memory:", names.size(), ::strsignal(signal));
        std::string last;
        for (const std::string& name : names) {
            const std::string mnemonic = name.substr(0, name.find(' '));
            if (mnemonic != last) std::printf(" %s", mnemonic.c_str());
            last = mnemonic;
        }
        std::printf("\n");
    }
}

TEST(InstructionForms, tiles_are_stored_row_by_row) {
    constexpr unsigned kPermit = 0x1023, kTileData = 18;  // of Linux's asm/prctl.h
    if (::syscall(SYS_arch_prctl, kPermit, kTileData) != 0)
        GTEST_SKIP() << "this processor has no tiles";
    const Faults faults;
    TwoBanks banks;
    Machine machine;
    const auto plain = reinterpret_cast<std::uint64_t>(banks.plain());
    const auto view = reinterpret_cast<std::uint64_t>(banks.view());
    std::mt19937_64 random{38};
    static State before, on_plain, on_view;
    machine.fill(before, random);
    unsigned bytes = 0, config_at = 0, unused = 0;
    __get_cpuid_count(0xD, 17, &bytes, &config_at, &unused, &unused);
    std::byte* const config = before.image.data() + config_at;
    std::memset(config, 0, 64);
    config[0] = std::byte{1};        // the palette
    config[16 + 2] = std::byte{20};  // bytes in a row of tile 1…
    config[48 + 1] = std::byte{7};   // …and rows
    const std::uint64_t all = machine.parts() | 3U << 17;
    before.registers.parts = all;
    std::memcpy(before.image.data() + 512, &all, sizeof all);
    before.registers.general[kRcx] = 100;
    on_plain = before;
    on_view = before;
    Form form;
    form.code = {0xC4, 0xE2, 0x7A, 0x4B, 0x4C, 0x0F, 0x10};  // tilestored %tmm1, 16(%rdi,%rcx)
    ASSERT_TRUE(machine.run(form, plain + kPlace, on_plain)) << raised;
    ASSERT_TRUE(machine.run(form, view + kPlace, on_view)) << raised;
    EXPECT_EQ(difference(on_plain, on_view, plain, view), "");
    EXPECT_EQ(banks.difference(), "");
}

}  // namespace
}  // namespace rmem::test

#endif
