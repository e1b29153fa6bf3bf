// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Objects that are taken and given back, with numbers that others may name them by.
///
/// An object stays where it is. Its number is told to another rank, which sends it back: find()
/// takes any number, and knows one whose object has been given back. In the steady state nothing is
/// allocated. T has a member `std::uint32_t number`, the pool's own, and constructors that throw
/// nothing.
/// Thread safety: one thread at a time. Errors: take() throws std::bad_alloc, and std::length_error
/// beyond kMax.

#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace mpi_channel {

template <class T>
class Pool {
public:
    static constexpr std::uint32_t kMax = std::uint32_t{1} << 20;

    /// A new one, made of these.
    template <class... Arguments>
    T& take(Arguments&&... arguments) {
        if (free_.empty()) {
            if (all_.size() == kMax) throw std::length_error("too many requests are under way");
            free_.reserve(all_.size() + 1);  // so that give() allocates nothing
            all_.emplace_back();
            all_.back().object.number = static_cast<std::uint32_t>(all_.size() - 1);
            free_.push_back(&all_.back());
        }
        Place& place = *free_.back();
        const std::uint32_t number = place.object.number + kMax;  // the next object in this place
        std::destroy_at(&place.object);
        std::construct_at(&place.object, std::forward<Arguments>(arguments)...);
        free_.pop_back();
        place.object.number = number;
        place.taken = true;
        return place.object;
    }
    void give(T& object) {
        Place& place = all_[object.number % kMax];
        place.taken = false;
        free_.push_back(&place);
    }
    [[nodiscard]] T* find(std::uint32_t number) {
        const std::uint32_t index = number % kMax;
        if (index >= all_.size()) return nullptr;
        Place& place = all_[index];
        return place.taken && place.object.number == number ? &place.object : nullptr;
    }
    template <class Look>
    void for_each(Look&& look) {
        for (Place& place : all_) {
            if (place.taken) look(place.object);
        }
    }
    [[nodiscard]] std::size_t taken() const noexcept { return all_.size() - free_.size(); }

private:
    struct Place {
        T object;
        bool taken = false;
    };
    std::deque<Place> all_;
    std::vector<Place*> free_;
};

}  // namespace mpi_channel
