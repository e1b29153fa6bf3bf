// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The sources from which `rmem record` gets a ring's writes: one for each kind of ring, with this
/// interface.
///
/// A source is an observer: it takes no part in the ring, no writer knows or waits for it. For
/// writes that it could not read in time it gives a record with RecordedWrite::kMissed in their
/// place.
/// Order: writes of one rank in theirs; of all ranks by their times, as far as they are known at a
/// look.
/// Invariants, executed: what a source gives is of one of the ring's nodes and ranks, lies at whole
/// words in a bank, and is no more than a recording takes at once; a memory is looked at by words
/// and after some time.
/// Thread safety: one thread at a time. Errors: `rmem::Error` from open_source().

#include "rmem/recording/recorded_write.hpp"
#include "rmem/ring/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tools {

class RecordSource {
public:
    /// Gets the writes, one by one; their words are the source's until the function returns.
    using Sink = std::function<void(const rmem::RecordedWrite&)>;

    RecordSource() = default;
    virtual ~RecordSource() = default;
    RecordSource(const RecordSource&) = delete;
    RecordSource& operator=(const RecordSource&) = delete;

    virtual const rmem::RingConfig& config() const = 0;
    /// Gives the present memory, where it is not zero (RecordedWrite::kAtStart), and begins there:
    /// later writes come from look(). Some of the first writes may be in the memory already.
    virtual void begin(std::int64_t now_ns, const Sink& sink) = 0;
    /// Gives what was written since, but no more than some ten thousand writes at once. True if
    /// there is so much that the next look should follow without a pause.
    virtual bool look(std::int64_t now_ns, const Sink& sink) = 0;
    /// Of a memory that is looked at: these words before all others, which then are no older.
    virtual void look_first_at(std::size_t, std::size_t) {}
    /// Nanoseconds between two looks.
    virtual std::int64_t interval_ns() const = 0;
    /// Whether a process is there that may write. A few system calls.
    virtual bool has_writers() const = 0;
};

struct SourceOptions {
    std::optional<unsigned> node;  ///< whose bank; without: of the first live node
    std::int64_t sample_ns = 0;    ///< look at the bank at this interval, instead of at the writes
};

/// The source for the ring of that name. Throws not_permitted for a ring that shows no writes (link
/// direct) unless it is to be sampled.
[[nodiscard]] std::unique_ptr<RecordSource> open_source(const std::string& ring,
                                                        const SourceOptions& options);

// ---- The sources, and their common part

/// Between looks at a log: a writer or a network at full speed needs milliseconds to fill one.
inline constexpr std::int64_t kLookNs = 200'000;
inline constexpr std::size_t kMaxAtOnce = 20'000;  ///< writes of one look
/// A log of which more than this part is filled between two looks is not left alone.
inline constexpr std::uint64_t kMuchOfLog = 8;

/// The logs of all ranks of a ring on link `ring`.
[[nodiscard]] std::unique_ptr<RecordSource> make_ring_source(std::shared_ptr<rmem::Ring> ring,
                                                             unsigned node);
/// The writes that the engine of one of this host's nodes of a ring on link `udp` sends and
/// applies.
[[nodiscard]] std::unique_ptr<RecordSource> make_udp_source(std::shared_ptr<rmem::Ring> ring);
/// The user's memory of any ring, looked at every so often: a change that is undone between two
/// looks is not seen, nor who made it (RecordedWrite::kSampled).
[[nodiscard]] std::unique_ptr<RecordSource> make_sampled_source(std::shared_ptr<rmem::Ring> ring,
                                                                unsigned node,
                                                                std::int64_t interval_ns);

/// Whether a recording of such a ring can have it.
[[nodiscard]] bool is_recordable(const rmem::RecordedWrite& write, const rmem::RingConfig& config);

/// Gives the words of [0, bytes) in a bank that are not zero, as writes of `write`'s node, rank,
/// time and flags.
void give_memory(const std::byte* bank, std::size_t bytes, rmem::RecordedWrite write,
                 const RecordSource::Sink& sink);

/// A word as a release-store left it.
std::uint32_t load_word(const std::byte* bank, std::size_t offset) noexcept;

}  // namespace tools
