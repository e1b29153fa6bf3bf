// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The card of this process, which the calls have no handle of, and how they reach it.
///
/// The card is there while its registers or its memory are mapped; unmapping the last of them waits
/// for calls that are under way. A fork()ed child begins with none.
/// It has the one place that is open of cards/common/handle_table.hpp.
/// Thread safety: any thread.
/// Errors: -1 and the other results of scrproto.h, with the sentence in rmem_last_error().

#include "cards/common/handle_table.hpp"
#include "cards/scramnet_plus/card.hpp"
#include "rmem/base/at_fork.hpp"

#include <exception>
#include <mutex>
#include <utility>

namespace cards::scramnet_plus {

class Process final : private rmem::AtFork {
public:
    /// Never destroyed: at the end of a program other threads may still use the memory.
    static Process& get();

    /// A call of the card; none: nothing is mapped.
    [[nodiscard]] HandleTable<Card>::Call card();
    [[nodiscard]] void* memory();
    /// The unit that is mapped next.
    [[nodiscard]] int choose(int unit);
    [[nodiscard]] int map_all(int unit);
    [[nodiscard]] int map_memory();
    [[nodiscard]] int map_registers();
    /// One of scr_registers_mapped and scr_memory_mapped.
    [[nodiscard]] int unmap(int& mapped);

private:
    using Lock = std::lock_guard<std::mutex>;
    /// What a program writes before it ends arrives, as with a card.
    struct Ending {
        Process& process;
        ~Ending();
    };

    // ---- Called under the lock.
    [[nodiscard]] int check(int unit) const;
    [[nodiscard]] int open();
    [[nodiscard]] int map();
    void close_unused();
    void in_child() noexcept override;

    std::mutex mutex_;
    unsigned unit_ = 0;
    unsigned card_ = 0;  ///< its place in the table; 0: none
    void* memory_ = nullptr;
};

int no_card();
int no_argument(const char* call, int argument, const char* known);
int no_place(const char* what);

/// Calls `body` with the card. `otherwise` where none is mapped, or the body throws.
template <class Result, class Body>
Result on_card(Result otherwise, Body&& body) noexcept {
    try {
        const auto card = Process::get().card();
        if (!card) {
            no_card();
            return otherwise;
        }
        return static_cast<Result>(body(*card));
    } catch (...) {
        static_cast<void>(rmem::failed_with(std::current_exception()));
        return otherwise;
    }
}

template <class Body>
[[nodiscard]] int on_card(Body&& body) noexcept {
    return on_card(kRefused, std::forward<Body>(body));
}

/// For calls that return nothing.
template <class Body>
void tell_card(Body&& body) noexcept {
    static_cast<void>(on_card(std::forward<Body>(body)));
}

/// Calls `body` with the process.
template <class Body>
[[nodiscard]] int on_process(Body&& body) noexcept {
    try {
        return body(Process::get());
    } catch (...) {
        static_cast<void>(rmem::failed_with(std::current_exception()));
        return kRefused;
    }
}

/// MEM or ACR.
template <class Memory, class Acrs>
[[nodiscard]] int on_part(const char* call, int part, Memory&& memory, Acrs&& acrs) {
    if (part == MEM) return memory();
    if (part == ACR) return acrs();
    return no_argument(call, part, "MEM or ACR");
}

}  // namespace cards::scramnet_plus
