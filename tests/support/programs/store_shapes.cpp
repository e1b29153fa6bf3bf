// SPDX-License-Identifier: Apache-2.0
#include "store_shapes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <complex>
#include <coroutine>
#include <exception>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace {

template <class T>
T& at(unsigned char* slot, std::size_t i = 0) {
    return reinterpret_cast<T*>(slot)[i];
}

template <std::size_t n>
void arrays(unsigned char* slot) {
    at<std::array<char, n>>(slot).fill(7);
    at<std::array<unsigned char, n>>(slot + 700).fill(static_cast<unsigned char>(one));
    at<std::array<char, n>>(slot + 1400) = at<std::array<char, n>>(slot);
}
SHAPE(array_fill_8) {
    arrays<8>(slot);
}
SHAPE(array_fill_30) {
    arrays<30>(slot);
}
SHAPE(array_fill_64) {
    arrays<64>(slot);
}
SHAPE(array_fill_600) {
    arrays<600>(slot);
}
SHAPE(array_of_words) {
    at<std::array<int, 40>>(slot).fill(+one);
    at<std::array<double, 12>>(slot, 10) = {1, 2, 3};
}
SHAPE(fill_n) {
    std::fill_n(slot, 60, 9);
    std::fill_n(&at<int>(slot, 100), 30, one);
    std::fill_n(&at<long>(slot, 100), one * 20, -1);
}
SHAPE(fill) {
    std::fill(slot, slot + 48, static_cast<unsigned char>(one));
    std::fill(&at<short>(slot, 50), &at<short>(slot, 90), 3);
}
SHAPE(copy) {
    std::copy(bytes, bytes + 48, slot);
    std::copy_n(bytes, 64, slot + 100);
    std::copy(bytes, bytes + one * 90, slot + 200);
    std::copy_backward(bytes, bytes + 31, slot + 400);
    std::move(bytes, bytes + 24, slot + 500);
}
SHAPE(array_copy) {
    std::array<int, 12> from{};
    from.fill(+one);
    std::copy(from.begin(), from.end(), &at<int>(slot));
    at<std::array<int, 12>>(slot, 2) = from;
    std::ranges::copy(from, &at<int>(slot, 100));
}
SHAPE(view_copy) {
    const std::string_view view("some words that are copied");
    view.copy(reinterpret_cast<char*>(slot), 100);
    std::string("a string, a longer one than that").copy(reinterpret_cast<char*>(slot) + 200, 90);
}
SHAPE(algorithms) {
    std::iota(&at<int>(slot), &at<int>(slot, 50), one);
    std::reverse(&at<int>(slot), &at<int>(slot, 20));
    std::sort(&at<int>(slot), &at<int>(slot, 50));
    std::rotate(slot, slot + 9, slot + 100);
    std::generate_n(&at<double>(slot, 100), 9, [] { return one + 0.5; });
    std::swap_ranges(slot, slot + 30, slot + 400);
}
SHAPE(uninitialized) {
    std::uninitialized_fill_n(slot, 50, one);
    std::uninitialized_copy(bytes, bytes + 40, slot + 100);
    std::uninitialized_value_construct_n(slot, 10);
    std::construct_at(&at<double>(slot, 100), 4);
}
SHAPE(swaps) {
    at<int>(slot) = one;
    std::swap(at<int>(slot), at<int>(slot, 9));
    at<std::array<char, 40>>(slot, 5)[3] = 'x';
    std::swap(at<std::array<char, 40>>(slot, 5), at<std::array<char, 40>>(slot, 6));
    std::exchange(at<long>(slot, 100), +one);
}

struct Base {
    virtual ~Base() = default;
    int b = one;
};
struct Derived : Base {
    double d[5]{1, 2};
    std::array<char, 20> c{};
    int e = 5;
    Derived() { c[3] = 'c'; }
};
SHAPE(placement_new) {
    auto* made = new (slot) Derived;
    made->e += 2;
    new (slot + 200) std::array<int, 30>{1, 2, 3};
    new (slot + 600) std::complex<double>(one, 2);
}
SHAPE(values) {
    new (slot) std::pair<int, double>(one, 2.5);
    new (slot + 100) std::tuple<char, long, float>('c', one, 3.f);
    new (slot + 200) std::optional<long>(one);
    *reinterpret_cast<std::optional<long>*>(slot + 200) = 7;
    auto* v = new (slot + 300) std::variant<int, double>(one);
    *v = 2.5;
}
#ifdef __clang__  // rmem-cc(1): GCC has no hook here
struct Vec {
    float x, y, z;
};
struct Big {
    long a[9];
};
[[gnu::noinline]] Vec vec() {
    return {1.f * static_cast<float>(one), 2, 3};
}
[[gnu::noinline]] Big big() {
    Big made{{one, 2}};
    made.a[7] = one;
    return made;
}
SHAPE(returned) {
    at<Vec>(slot) = vec();
    new (slot + 100) Vec(vec());
    at<Big>(slot, 3) = big();
    new (slot + 600) Big(big());
}
#endif
SHAPE(atomic_objects) {
    auto* a = new (slot) std::atomic<int>(one);
    a->fetch_add(4);
    a->store(9, std::memory_order_release);
    std::atomic_ref<long>(at<long>(slot, 20)) += 4;
    auto* f = new (slot + 400) std::atomic<float>;
    f->store(2);
    new (slot + 500) std::atomic_flag;
    reinterpret_cast<std::atomic_flag*>(slot + 500)->test_and_set();
}
SHAPE(exceptions) {
    try {
        at<int>(slot) = one;
        if (one) throw std::runtime_error("thrown");
        at<int>(slot, 1) = 99;
    } catch (const std::exception& error) {
        at<int>(slot, 2) = error.what()[0];
    }
    at<int>(slot, 3) = 4;
}
struct AtEnd {
    unsigned char* slot;
    ~AtEnd() { at<long>(slot, 40) = one; }
};
SHAPE(unwinding) {
    try {
        AtEnd end{slot};
        slot[3] = 5;
        throw one;
    } catch (int thrown) {
        slot[9] = static_cast<unsigned char>(thrown);
    }
}

struct Task {
    struct promise_type {
        Task get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
};
Task steps(unsigned char* slot) {
    int step = one;
    at<int>(slot) = step;
    co_await std::suspend_always{};
    at<double>(slot, 9) = step + 0.5;
    co_await std::suspend_always{};
    at<std::array<char, 30>>(slot, 9).fill('c');
}
SHAPE(coroutine) {
    Task task = steps(slot);
    while (!task.handle.done()) task.handle.resume();
    task.handle.destroy();
}
SHAPE(lambdas) {
    auto set = [slot](auto value) { at<decltype(value)>(slot, 5) = value; };
    set(one + 0);
    set(2.5);
    set(3.5L);
    set(std::array<short, 7>{1, 2, 3});
}
template <class T>
[[gnu::noinline]] T& chain(T& value) {
    return value = static_cast<T>(value + one);
}
SHAPE(templates) {
    chain(at<char>(slot));
    chain(at<short>(slot, 5));
    chain(at<long double>(slot, 3));
    chain(chain(at<float>(slot, 40)));
}

}  // namespace
