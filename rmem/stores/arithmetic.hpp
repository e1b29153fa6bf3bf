// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Arithmetic of x86-64 with its flags, done by the processor's own instructions on a copy.
/// Thread safety: functions of their arguments. Source: Intel SDM volumes 1 (EFLAGS) and 2.

#if defined(__x86_64__)

#include <Zydis/Mnemonic.h>

#include <cstdint>
#include <optional>

namespace rmem::stores {

enum class Arithmetic {
    none,
    add,
    adc,
    sub,
    sbb,
    bit_and,
    bit_or,
    bit_xor,
    inc,
    dec,
    neg,
    bit_not
};

/// `none`: another instruction.
inline Arithmetic arithmetic_of(ZydisMnemonic mnemonic) noexcept {
    switch (mnemonic) {
        case ZYDIS_MNEMONIC_ADD: return Arithmetic::add;
        case ZYDIS_MNEMONIC_ADC: return Arithmetic::adc;
        case ZYDIS_MNEMONIC_SUB: return Arithmetic::sub;
        case ZYDIS_MNEMONIC_SBB: return Arithmetic::sbb;
        case ZYDIS_MNEMONIC_AND: return Arithmetic::bit_and;
        case ZYDIS_MNEMONIC_OR: return Arithmetic::bit_or;
        case ZYDIS_MNEMONIC_XOR: return Arithmetic::bit_xor;
        case ZYDIS_MNEMONIC_INC: return Arithmetic::inc;
        case ZYDIS_MNEMONIC_DEC: return Arithmetic::dec;
        case ZYDIS_MNEMONIC_NEG: return Arithmetic::neg;
        case ZYDIS_MNEMONIC_NOT: return Arithmetic::bit_not;
        default: return Arithmetic::none;
    }
}

inline constexpr std::uint64_t kCarry = 1U << 0, kParity = 1U << 2, kAdjust = 1U << 4,
                               kZero = 1U << 6, kSign = 1U << 7, kOverflow = 1U << 11;
inline constexpr std::uint64_t kArithmeticFlags =
    kCarry | kParity | kAdjust | kZero | kSign | kOverflow;

/// Runs an instruction between a load and a store of the arithmetic flags; below the red zone.
#define RMEM_WITH_FLAGS(instruction, ...)                                            \
    do {                                                                             \
        std::uint64_t own = (flags & kArithmeticFlags) | 0x202;                      \
        asm volatile("lea -128(%%rsp), %%rsp\n\tpush %[own]\n\tpopf\n\t" instruction \
                     "\n\tpushf\n\tpop %[own]\n\tlea 128(%%rsp), %%rsp"              \
                     : [own] "+&r"(own), __VA_ARGS__                                 \
                     : "cc", "memory");                                              \
        flags = (flags & ~kArithmeticFlags) | (own & kArithmeticFlags);              \
    } while (false)

/// `memory` becomes what the instruction makes of it. False: it is none of these.
template <class T>
bool compute(Arithmetic what, T& memory, T operand, std::uint64_t& flags) noexcept {
    T m = memory;
    switch (what) {
        case Arithmetic::add:
            RMEM_WITH_FLAGS("add %[s], %[m]", [m] "+&r"(m) : [s] "r"(operand));
            break;
        case Arithmetic::adc:
            RMEM_WITH_FLAGS("adc %[s], %[m]", [m] "+&r"(m) : [s] "r"(operand));
            break;
        case Arithmetic::sub:
            RMEM_WITH_FLAGS("sub %[s], %[m]", [m] "+&r"(m) : [s] "r"(operand));
            break;
        case Arithmetic::sbb:
            RMEM_WITH_FLAGS("sbb %[s], %[m]", [m] "+&r"(m) : [s] "r"(operand));
            break;
        case Arithmetic::bit_and:
            RMEM_WITH_FLAGS("and %[s], %[m]", [m] "+&r"(m) : [s] "r"(operand));
            break;
        case Arithmetic::bit_or:
            RMEM_WITH_FLAGS("or %[s], %[m]", [m] "+&r"(m) : [s] "r"(operand));
            break;
        case Arithmetic::bit_xor:
            RMEM_WITH_FLAGS("xor %[s], %[m]", [m] "+&r"(m) : [s] "r"(operand));
            break;
        case Arithmetic::inc: RMEM_WITH_FLAGS("inc %[m]", [m] "+&r"(m) :); break;
        case Arithmetic::dec: RMEM_WITH_FLAGS("dec %[m]", [m] "+&r"(m) :); break;
        case Arithmetic::neg: RMEM_WITH_FLAGS("neg %[m]", [m] "+&r"(m) :); break;
        case Arithmetic::bit_not: m = static_cast<T>(~m); break;
        case Arithmetic::none: return false;
    }
    memory = m;
    return true;
}

/// xadd: `memory` becomes the sum, `operand` what the memory was.
template <class T>
void exchange_and_add(T& memory, T& operand, std::uint64_t& flags) noexcept {
    T m = memory, s = operand;
    RMEM_WITH_FLAGS("xadd %[s], %[m]", [m] "+&r"(m), [s] "+&r"(s) :);
    memory = m;
    operand = s;
}

/// cmpxchg: true where `memory` was as expected and is `operand` now; else `expected` is what it
/// is.
template <class T>
bool compare_and_exchange(T& memory, T& expected, T operand, std::uint64_t& flags) noexcept {
    T m = memory, a = expected;
    RMEM_WITH_FLAGS("cmpxchg %[s], %[m]", [m] "+&r"(m), [a] "+&a"(a) : [s] "r"(operand));
    memory = m;
    expected = a;
    return (flags & kZero) != 0;
}

#undef RMEM_WITH_FLAGS

/// The condition of a setcc as its number in the instruction's code; nothing: another instruction.
inline std::optional<unsigned> condition_of(ZydisMnemonic mnemonic) noexcept {
    switch (mnemonic) {
        case ZYDIS_MNEMONIC_SETO: return 0;
        case ZYDIS_MNEMONIC_SETNO: return 1;
        case ZYDIS_MNEMONIC_SETB: return 2;
        case ZYDIS_MNEMONIC_SETNB: return 3;
        case ZYDIS_MNEMONIC_SETZ: return 4;
        case ZYDIS_MNEMONIC_SETNZ: return 5;
        case ZYDIS_MNEMONIC_SETBE: return 6;
        case ZYDIS_MNEMONIC_SETNBE: return 7;
        case ZYDIS_MNEMONIC_SETS: return 8;
        case ZYDIS_MNEMONIC_SETNS: return 9;
        case ZYDIS_MNEMONIC_SETP: return 10;
        case ZYDIS_MNEMONIC_SETNP: return 11;
        case ZYDIS_MNEMONIC_SETL: return 12;
        case ZYDIS_MNEMONIC_SETNL: return 13;
        case ZYDIS_MNEMONIC_SETLE: return 14;
        case ZYDIS_MNEMONIC_SETNLE: return 15;
        default: return std::nullopt;
    }
}

/// Whether it holds: the odd ones are the even ones, negated.
inline bool holds(unsigned condition, std::uint64_t flags) noexcept {
    const bool is_less = ((flags & kSign) != 0) != ((flags & kOverflow) != 0);
    bool value = false;
    switch (condition / 2) {
        case 0: value = (flags & kOverflow) != 0; break;
        case 1: value = (flags & kCarry) != 0; break;
        case 2: value = (flags & kZero) != 0; break;
        case 3: value = (flags & (kCarry | kZero)) != 0; break;
        case 4: value = (flags & kSign) != 0; break;
        case 5: value = (flags & kParity) != 0; break;
        case 6: value = is_less; break;
        default: value = is_less || (flags & kZero) != 0; break;
    }
    return value != (condition % 2 != 0);
}

}  // namespace rmem::stores

#endif
