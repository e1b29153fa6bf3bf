// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Functions of other libraries that the linker leads through here (--wrap), as SHAPED makes them.
/// Thread safety: the function's own.

#include "rmem/instrumented/pending.hpp"

#include <cstddef>
#include <tuple>
#include <type_traits>

#define HOOK extern "C" [[gnu::visibility("default")]]

namespace rmem::instrumented {

/// A C function's parts.
template <class F>
struct Shape;
template <class R, class... A>
struct Shape<R(A...)> {
    using Result = R;
    using Arguments = std::tuple<A...>;
};
template <class R, class... A>
struct Shape<R(A...) noexcept> : Shape<R(A...)> {};

template <class F>
using Result = typename Shape<F>::Result;
template <class F, std::size_t n>
using Argument = std::tuple_element_t<n, typename Shape<F>::Arguments>;

/// What has been stored.
inline void bytes(const void* to, std::size_t n) noexcept {
    if (to != nullptr && n != 0) has_stored(to, n);
}

template <class Call, class Then>
auto call_then(const Call& call, const Then& then) {
    if constexpr (std::is_void_v<decltype(call())>) {
        call();
        then(std::size_t{0});
    } else {
        const auto result = call();
        then(result);
        return result;
    }
}

}  // namespace rmem::instrumented

using rmem::instrumented::Argument;
using rmem::instrumented::call_then;
using rmem::instrumented::Result;

#define PARAMETERS0(F)
#define PARAMETERS1(F) Argument<F, 0> a
#define PARAMETERS2(F) PARAMETERS1(F), Argument<F, 1> b
#define PARAMETERS3(F) PARAMETERS2(F), Argument<F, 2> c
#define PARAMETERS4(F) PARAMETERS3(F), Argument<F, 3> d
#define PARAMETERS5(F) PARAMETERS4(F), Argument<F, 4> e
#define PARAMETERS6(F) PARAMETERS5(F), Argument<F, 5> f
#define PARAMETERS7(F) PARAMETERS6(F), Argument<F, 6> g
#define ARGUMENTS0
#define ARGUMENTS1 a
#define ARGUMENTS2 a, b
#define ARGUMENTS3 a, b, c
#define ARGUMENTS4 a, b, c, d
#define ARGUMENTS5 a, b, c, d, e
#define ARGUMENTS6 a, b, c, d, e, f
#define ARGUMENTS7 a, b, c, d, e, f, g

// A function of the linker's list; then what it has stored, told from its arguments and its result.
#define HOOKED(name, type, parameters, arguments, ...)                                 \
    extern "C" type __real_##name parameters;                                          \
    HOOK type __wrap_##name parameters {                                               \
        rmem::instrumented::publish();                                                 \
        return call_then([&] { return __real_##name arguments; },                      \
                         [&]([[maybe_unused]] auto result) noexcept { __VA_ARGS__; }); \
    }
// One of n arguments, which are called a, b, c, ...
#define SHAPED(n, name, F, ...) \
    HOOKED(name, Result<F>, (PARAMETERS##n(F)), (ARGUMENTS##n), __VA_ARGS__)
