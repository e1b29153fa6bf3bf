// SPDX-License-Identifier: Apache-2.0
#pragma once

/// FarMemory over an endpoint of libfabric of its own: a message's receiver reads it with fi_read.
///
///     FabricMemory memory({find_way, ranks, is_elsewhere, told});
///
/// The endpoint is opened when the first message is offered, here or by another. If that fails it
/// is not tried again: `told` gets a sentence, and all messages go over the ring. A rank that
/// cannot be connected to within kMeetNs, or whose memory cannot be read, is out of reach for
/// kLeastRestNs, and until one is read each time for twice as long, to kMaxRestNs; `told` hears of
/// it once. One that does not read here is offered nothing for kLeastRestNs.
///
/// A read cannot be called back. So when a rank dies that is being read from, the endpoint is
/// closed, and with it everything that might still write here; other reads end as not read, and
/// what is on offer cannot be read. The next message opens another one.
///
/// Trust: a reader shows the key of what is on offer, 64 random bits: those who see the network's
/// packets know it, and see the message itself, others do not. What is read is not authenticated,
/// and a name makes this rank connect to where it says (docs/design/mpi-channel.md).
/// Thread safety: one thread at a time. Progress: in calls; none waits, but that opening takes
/// libfabric up to half a second where it is not loaded yet. Errors: results, and sentences to
/// `told`; std::bad_alloc.
/// Units: nanoseconds. Source: fi_rma(3), fi_mr(3), fi_cq(3), getrandom(2).

#include "rmem/base/clock.hpp"
#include "rmem/link/fabric/make_endpoint.hpp"
#include "rmem/link/fabric/provider.hpp"
#include "rmem/link/far_memory.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rmem::fabric {

class FabricMemory final : public FarMemory {
public:
    static constexpr std::int64_t kMeetNs = 3'000'000'000;
    static constexpr std::int64_t kLeastRestNs = 10'000'000'000, kMaxRestNs = 3600'000'000'000;
    static constexpr std::size_t kMaxProviderNameBytes = 64;

    explicit FabricMemory(FarSettings settings);
    FabricMemory(const FabricMemory&) = delete;
    FabricMemory& operator=(const FabricMemory&) = delete;

    [[nodiscard]] bool reaches(unsigned rank, std::size_t size) override;
    [[nodiscard]] std::span<const std::byte> name() override;
    [[nodiscard]] std::optional<Place> offer(std::span<const std::byte> bytes) override;
    void withdraw(const Place& place) noexcept override;
    void found_no_reader(unsigned rank) override;
    [[nodiscard]] bool meet(unsigned rank, std::span<const std::byte> name) override;
    void read(unsigned rank, const Place& place, std::span<std::byte> to,
              std::uint32_t number) override;
    void drop(unsigned rank) noexcept override;
    [[nodiscard]] std::optional<Ended> progress() override;
    [[nodiscard]] bool is_busy() const noexcept override {
        return !reads_.empty() || !ended_.empty() || !lost_.empty() || !offers_.empty();
    }

private:
    struct Close {
        template <class Object>
        void operator()(Object* object) const noexcept {
            ::fi_close(&object->fid);
        }
    };
    template <class Object>
    using Fid = std::unique_ptr<Object, Close>;
    /// After what has failed.
    struct Rest {
        std::int64_t until_ns = 0, next_ns = kLeastRestNs;
        [[nodiscard]] bool is_on() const { return now_ns() < until_ns; }
        void begin() { until_ns = now_ns() + next_ns; }
    };
    struct Peer {
        Rest reader, memory;  ///< while it does not read here, or cannot be read
        bool is_reader_told = false, is_memory_told = false;
        std::vector<std::byte> name;
        fi_addr_t address = FI_ADDR_NOTAVAIL;
        unsigned under_way = 0;       ///< reads that the provider has
        std::int64_t refused_ns = 0;  ///< since when it takes none; 0: it does
        bool is_full = false;         ///< at this look
    };
    struct Read {
        fi_context2 context{};  ///< first: the provider gives it back
        unsigned rank = 0;
        Place place;
        std::span<std::byte> to;
        std::uint32_t number = 0;
        bool is_given = false;  ///< the provider has it
        Fid<fid_mr> registration;
    };
    using Reads = std::list<std::unique_ptr<Read>>;

    [[nodiscard]] bool open();
    void open_endpoint();
    [[nodiscard]] Info choose();
    void close() noexcept;
    [[nodiscard]] Fid<fid_mr> registered(const void* memory, std::size_t bytes,
                                         std::uint64_t access);
    void give_waiting();
    /// 0, -FI_EAGAIN, or why there is no way.
    [[nodiscard]] ssize_t give(Read& read);
    void look();
    void end(const Read* read, bool is_read);
    void lose_sight(unsigned rank, const std::string& why);

    const FarSettings settings_;
    std::vector<Peer> peers_;  ///< by rank
    FarWay way_;
    bool is_tried_ = false;  ///< the endpoint has been opened, or could not be
    Info info_;
    // Closed in the other order
    Fid<fid_fabric> fabric_;
    Fid<fid_domain> domain_;
    Fid<fid_av> addresses_;
    Fid<fid_cq> queue_;
    Fid<fid_ep> endpoint_;
    std::vector<std::byte> name_;
    std::map<std::uint64_t, Fid<fid_mr>> offers_;  ///< by key
    Reads reads_;                                  ///< in the order asked
    Reads lost_;  ///< whose endpoint has been closed, and is not told yet
    struct EndedOf {
        unsigned rank;
        Ended read;
    };
    std::deque<EndedOf> ended_;
};

}  // namespace rmem::fabric
