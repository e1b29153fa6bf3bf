// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Waiting for another process: spin, yield, sleep.
///
/// A waiter polls. Between polls it spins while there are processors to spare (not at all when the
/// live ranks exceed the processors they may use together: then spinning would keep the awaited
/// rank from running), yields for kYieldNs and until it has had three turns, and then sleeps
/// on a futex outside the bank: rmem/ring/waiting/wait_stages.hpp. RMEM_SPIN sets the number of
/// polls by hand.
///
/// A program that polls by itself, with calls that do not wait, gives way instead (`give_way`):
/// after a look that found nothing its processor goes to another rank, where there are more ranks
/// than processors. Without that each rank would poll for its whole time slice, while the one that
/// it polls for waits for a processor. This is the one place for that rule.
///
/// Waking: a poster looks at one `attention` word after its post and, if the bit for posts is set,
/// clears it, adds one to the sleeper's wake word and wakes it. The poster pays no fence for that:
/// the sleeper sets the bit, makes the heavy fence (rmem/base/fence.hpp), and polls once more
/// before it sleeps. Where the kernel refuses that, sleeps are short instead (kBlindSleepNs). A
/// Waiter says what it waits for, and nothing else wakes it: a post, an interrupt, or a change of
/// one word (rmem/ring/waiting/word_sleepers.hpp). Each asking is good for one wake.
///
/// Ranks that sleep need no processor: the ring counts those that are awake.
///
/// Thread safety: a Waiter belongs to one thread; `give_way` and `wake` may be called by any.
/// Progress: `step` never blocks longer than kMaxSleepNs, so a lost wake-up costs a delay, not a
/// hang.

#include "rmem/base/clock.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/base/relaxed.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/wait_stages.hpp"
#include "rmem/ring/waiting/word_sleepers.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace rmem {

inline constexpr unsigned kSpinPolls = 20'000;            ///< about 0.3 ms of polling
inline constexpr unsigned kBriefPolls = 256;              ///< of these, before `begin` is worth it
inline constexpr unsigned kMaxSpinPolls = 1'000'000'000;  ///< what RMEM_SPIN may say
inline constexpr unsigned kLooksPerCount = 64;  ///< empty looks between counts of the ranks
inline constexpr unsigned kLeastYields = 3;  ///< and so often: in a large crowd a turn comes later
inline constexpr std::int64_t kCheckNs = 1'000'000;  ///< look for dead peers this often
inline constexpr unsigned kMaxCrowd =
    64;  ///< or rarer, by the ranks that share a processor, up to this
inline constexpr std::int64_t kMaxSleepNs = 10'000'000;  ///< longest single sleep
inline constexpr std::int64_t kBlindSleepNs = 200'000;   ///< the same where wake-ups may be lost

/// Bits of a rank's `attention` word: which of its threads wait to be woken.
inline constexpr std::uint32_t kAttentionSleeping = 1;    ///< a Waiter, for a post
inline constexpr std::uint32_t kAttentionInterrupts = 2;  ///< the helper behind Node::interrupt_fd
inline constexpr std::uint32_t kAttentionDescriptor =
    4;  ///< the helper behind a protocol's descriptor
inline constexpr std::uint32_t kAttentionProgress =
    8;  ///< the thread behind a program that computes
inline constexpr std::uint32_t kAttentionTaking = 16;  ///< a Waiter, for an interrupt
/// A Waiter is in the kernel: it needs no processor. It asks for nothing.
inline constexpr std::uint32_t kAttentionAsleep = 32;

/// What a post, an interrupt, and (where others have to apply it) any write looks for.
inline constexpr std::uint32_t kPostsWake =
    kAttentionSleeping | kAttentionDescriptor | kAttentionProgress;
inline constexpr std::uint32_t kInterruptsWake = kAttentionInterrupts | kAttentionTaking;
inline constexpr std::uint32_t kWritesWake = kPostsWake | kInterruptsWake;

inline void cpu_relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// What to do after a step.
enum class Step { poll, check_peers, expired };

/// Wakes a rank that has asked for it, after that for which it waits; its Waiter has to ask again.
RMEM_API void wake_rank(const Ring& ring, unsigned rank) noexcept;
/// The same for a post or write, where `asked` bits are set: a protocol's descriptor is made
/// readable without its thread, where that can be.
RMEM_API void wake_asked(const Ring& ring, unsigned rank, std::uint32_t asked) noexcept;

/// The sleeper's side, for waits without a Waiter: read the count, ask for attention, look once
/// more for the awaited change, sleep until the count differs from the one read.
RMEM_API std::uint32_t wake_count(const Ring& ring, unsigned rank) noexcept;
RMEM_API void ask_attention(const Ring& ring, unsigned rank, std::uint32_t bit) noexcept;
RMEM_API void clear_attention(const Ring& ring, unsigned rank, std::uint32_t bit) noexcept;
RMEM_API void sleep_until_woken(const Ring& ring, unsigned rank, std::uint32_t count_read,
                                std::int64_t longest_ns) noexcept;

/// The same of any word that processes share: until it differs from the value seen, or is woken.
RMEM_API void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen,
                       std::int64_t longest_ns) noexcept;
RMEM_API void wake_sleepers(std::atomic<std::uint32_t>& word) noexcept;

/// How a rank sleeps that is woken by other things than its wake word, as by a network's datagrams.
class Sleeper {
public:
    virtual void sleep(std::int64_t longest_ns) noexcept = 0;

protected:
    ~Sleeper() = default;
};

/// What polls on this host and the ring does not count.
struct Company {
    struct Rank {
        std::shared_ptr<const Ring> ring;
        unsigned rank;
    };
    std::vector<Rank> ranks;  ///< those that sleep in a wait need no processor
    unsigned daemons = 0;
    ProcessorSet processors{};  ///< that these may run on
};

/// One rank's way of waiting.
class RMEM_API Waiter {
public:
    Waiter(Ring& ring, unsigned rank);

    /// Sleeps by that from now on; null: on the wake word.
    void sleep_by(Sleeper* sleeper) noexcept { sleeper_ = sleeper; }
    /// Maximum number of polls before yielding, for links whose poll is expensive; looks at the
    /// clock, and at who else is awake, are as much closer.
    void set_most_polls(unsigned polls) noexcept {
        most_polls_ = polls;
        polls_per_check_ = std::bit_floor(std::max(1U, polls / (kSpinPolls / kSpinPollsPerCheck)));
        refresh_spin_limit();
    }
    void set_company(Company company) noexcept;

    /// Polls that a caller may make by itself, each after a cpu_relax, before it begins a wait: a
    /// shorter way from one poll to the next is a shorter way from a message to its receiver.
    unsigned brief_polls() const noexcept {
        const unsigned limit = spin_limit();
        return limit < kBriefPolls ? limit : kBriefPolls;
    }

    /// Whether a poller is to yield between two polls.
    bool is_crowded() noexcept {
        refresh_spin_limit();
        return spin_limit() == 0;
    }

    /// After a look that found nothing, by a caller that polls and does not wait.
    void give_way() noexcept {
        const unsigned looks = looks_.add();
        if (spin_limit() == 0 || looks % kLooksPerCount == 0) [[unlikely]]
            give_way_if_crowded(looks);
    }

    /// Starts a wait for a post; `step` is called between polls, `end` when it is over (either
    /// way).
    void begin() noexcept { begin(kAttentionSleeping, nullptr, 0); }
    /// The same for a word of a bank whose writers look for such sleepers, which outlive the wait.
    void begin_for_word(const WordSleepers& sleepers, std::size_t offset) noexcept {
        begin(0, &sleepers, offset);
    }
    void begin_for_interrupt() noexcept { begin(kAttentionTaking, nullptr, 0); }
    Step step(Deadline deadline) noexcept {
        if (stages_.spins_on(spin_limit(), polls_per_check_)) {
            cpu_relax();
            return Step::poll;
        }
        return slow_step(deadline);
    }
    /// Before a `step` that must not sleep, because something is known to be on its way.
    void stay_awake() noexcept {
        if (!stages_.is_sleeping()) return;
        end();
        stages_.begin();
    }
    /// Whether it has slept since it asked to be woken, and was not woken.
    [[nodiscard]] bool sleeps_on() const noexcept {
        return has_slept_ && armed_ && has_fences_ && has_asked();
    }
    void end() noexcept {
        if (armed_) disarm();
    }

    /// Wakes `rank` if it sleeps; called after the post that it may be waiting for.
    void notify(unsigned rank) const noexcept {
        light_fence();
        // relaxed is enough: the fence orders this load after the post before it
        const std::uint32_t asked = attention_[rank].load(std::memory_order_relaxed) & kPostsWake;
        if (asked != 0) [[unlikely]]
            wake_asked(ring_, rank, asked);
    }
    void wake(unsigned rank) const noexcept { wake_rank(ring_, rank); }

    /// Looks again at how many ranks share how many processors.
    void refresh_spin_limit() noexcept;

private:
    unsigned spin_limit() const noexcept { return spin_limit_.get(); }
    void give_way_if_crowded(unsigned looks) noexcept;
    [[nodiscard]] Step slow_step(Deadline deadline) noexcept;
    void begin(std::uint32_t asks, const WordSleepers* words, std::size_t offset) noexcept {
        asks_ = asks;
        words_ = words;
        word_ = offset;
        stages_.begin();
    }
    void arm() noexcept;
    [[nodiscard]] bool has_asked() const noexcept;
    void disarm() noexcept;
    void sleep(std::int64_t ns) noexcept;

    WaitStages stages_{kLeastYields};
    Hint<unsigned> spin_limit_{0};  ///< 0: there are more ranks than processors
    Hint<unsigned> crowd_{1};       ///< ranks for each processor
    Counter<unsigned> looks_{0};    ///< that found nothing
    unsigned waits_ = 0;            ///< that were not over at once, while crowded
    std::optional<unsigned> spin_setting_;
    std::uint32_t asks_ = kAttentionSleeping;  ///< the bit that it is woken by; 0: by the word
    const WordSleepers* words_ = nullptr;      ///< null: it waits for no word
    std::size_t word_ = 0;
    bool armed_ = false;
    bool has_slept_ = false;  ///< since it was armed
    bool has_fences_ = false;
    std::uint32_t wake_seen_ = 0;
    std::int64_t next_check_ns_ = 0;
    Sleeper* sleeper_ = nullptr;
    unsigned most_polls_ = kSpinPolls;
    unsigned polls_per_check_ = kSpinPollsPerCheck;
    std::mutex company_mutex_;
    Company company_;
    unsigned rank_;
    unsigned quota_;  ///< processors that a cgroup leaves to this process
    Ring& ring_;
    std::atomic<std::uint32_t>* attention_;
};

/// The own affinity mask, as RankSlot::processors holds it.
ProcessorSet own_processors();

/// Processors that this process may use: its affinity mask, less what a cgroup quota takes away;
/// one at least.
RMEM_API unsigned allowed_processors() noexcept;

/// `processors`, or as many as a cgroup's quota keeps busy: none, where it is a part of one.
RMEM_API unsigned within_quota(unsigned processors) noexcept;

}  // namespace rmem
