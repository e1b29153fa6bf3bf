// SPDX-License-Identifier: Apache-2.0
#include "rmem/recording/player.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace rmem {

namespace {

Error no_speed(const std::string& text) {
    return {
        Errc::invalid_argument,
        fmt::format("'{}' is not a speed; give for instance 1x, 0.5x or 10x (0.001x to {}x), max, "
                    "or step",
                    text, PlaySpeed::kMaxThousandths / 1000)};
}

/// All of `text`, in digits; false if it is anything else.
bool read_digits(std::string_view text, std::uint32_t& number) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    return error == std::errc{} && rest == end;
}

/// a * b / c, or kNever. All are positive; c and b are small enough that only the result can be too
/// large.
std::int64_t scale(std::int64_t a, std::int64_t b, std::int64_t c) noexcept {
    std::int64_t whole = 0;
    if (__builtin_mul_overflow(a / c, b, &whole)) return kNever;
    return __builtin_add_overflow(whole, a % c * b / c, &whole) ? kNever : whole;
}

}  // namespace

PlaySpeed parse_play_speed(const std::string& text) {
    if (text == "max") return {PlaySpeed::Kind::unpaced, 1000};
    if (text == "step") return {PlaySpeed::Kind::stepped, 1000};
    if (text.empty() || text.back() != 'x') throw no_speed(text);
    const std::string_view number(text.data(), text.size() - 1);
    const std::size_t point = number.find('.');
    std::uint32_t whole = 0;
    std::uint32_t part = 0;
    if (!read_digits(number.substr(0, point), whole)) throw no_speed(text);
    if (point != std::string_view::npos) {
        std::string digits(number.substr(point + 1));
        if (digits.empty() || digits.size() > 3) throw no_speed(text);
        digits.resize(3, '0');
        if (!read_digits(digits, part)) throw no_speed(text);
    }
    const std::uint64_t thousandths = std::uint64_t{whole} * 1000 + part;
    if (thousandths == 0 || thousandths > PlaySpeed::kMaxThousandths) throw no_speed(text);
    return {PlaySpeed::Kind::timed, static_cast<std::uint32_t>(thousandths)};
}

std::int64_t Player::due_ns(std::int64_t recorded_ns) const noexcept {
    if (speed_.kind == PlaySpeed::Kind::stepped && steps_ == 0) return kNever;
    if (speed_.kind != PlaySpeed::Kind::timed || recorded_ns <= recorded_ns_) return started_ns_;
    std::int64_t apart = 0;
    if (__builtin_sub_overflow(recorded_ns, recorded_ns_, &apart)) return kNever;
    std::int64_t due = 0;
    const std::int64_t scaled = scale(apart, 1000, speed_.thousandths);
    return __builtin_add_overflow(started_ns_, scaled, &due) ? kNever : due;
}

bool Player::take(std::int64_t recorded_ns, std::int64_t now_ns) noexcept {
    if (now_ns < due_ns(recorded_ns)) return false;
    if (speed_.kind == PlaySpeed::Kind::stepped) {
        if (steps_ == 0) return false;  // at the end of time
        --steps_;
    }
    return true;
}

}  // namespace rmem
