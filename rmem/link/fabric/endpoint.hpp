// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node's endpoint on a fabric, as the carrier of its datagrams (rmem/link/carrier/carrier.hpp).
///
/// What is sent leaves for each other node by itself, or, across racks, for one node of each, which
/// passes it on (rmem/link/fabric/topology.hpp). A node that the provider has no room for is sent
/// the same later, in order; one that cannot be reached is left alone for a while
/// (rmem/link/fabric/outbound.hpp). What a broken connection took along is lost, and counted.
///
/// Threads: Carrier's. Progress: Carrier's; the provider advances in these calls alone.
/// Errors: the constructor throws Error: no_fabric, bad_environment (an address that is taken, a
/// directory that cannot be written), system.
/// Trust: what is received is anybody's bytes. A mark is obeyed once for each piece, where there
/// are racks, after the protocol has taken a datagram of the piece: outsiders have nothing passed
/// on.
/// Invariant, executed: where there is one rack nothing is passed on.
/// Source: fi_endpoint(3), fi_msg(3), fi_cq(3), fi_av(3).

#include "rmem/link/carrier/carrier.hpp"
#include "rmem/link/fabric/connections.hpp"
#include "rmem/link/fabric/make_endpoint.hpp"
#include "rmem/link/fabric/outbound.hpp"
#include "rmem/link/fabric/peer_addresses.hpp"
#include "rmem/link/fabric/pieces.hpp"
#include "rmem/link/fabric/provider.hpp"
#include "rmem/link/fabric/settings.hpp"
#include "rmem/ring/segment.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rmem::fabric {

struct CloseFid {
    template <class Object>
    void operator()(Object* object) const noexcept {
        if (object != nullptr) ::fi_close(&object->fid);
    }
};
template <class Object>
using Fid = std::unique_ptr<Object, CloseFid>;

class RMEM_API Endpoint final : public udp::Carrier, private Wire {
public:
    static constexpr std::size_t kArenaBytes = std::size_t{512} << 10;
    static constexpr std::int64_t kPolledNs = 100'000;  ///< without a descriptor, between looks

    explicit Endpoint(const EndpointSettings& settings);
    ~Endpoint() override;

    // ---- Carrier
    bool send(std::span<const std::byte> datagram) noexcept override;
    void queue(std::span<const std::byte> datagram) noexcept override;
    std::size_t flush() noexcept override;
    /// A number is an address here: no node hears it.
    void send_to_namesakes(std::span<const std::byte>) noexcept override {}
    Datagrams receive() noexcept override;
    void has_taken(std::span<const std::byte> datagram) noexcept override;
    int handle() const noexcept override { return handle_.get(); }
    [[nodiscard]] bool may_sleep() noexcept override;
    std::int64_t due_ns() const noexcept override;
    void ask_for_senders(bool) noexcept override {}
    bool asks_for_senders() const noexcept override { return true; }
    udp::Ip sender(std::size_t) const noexcept override { return 0; }
    const udp::CarrierCounters& counters() const noexcept override { return counters_; }
    std::uint64_t overflowed() const noexcept override { return 0; }
    /// The fabric holds back what a node has no room for: no window for a socket is needed.
    std::uint32_t bytes_held() const noexcept override { return std::uint32_t{1} << 30; }
    std::string buffer_advice() const override { return ""; }
    bool is_reliable() const noexcept override { return true; }

    // ---- For people
    const fi_info& info() const noexcept { return *info_; }
    std::string provider() const { return info_->fabric_attr->prov_name; }

private:
    static constexpr std::int64_t kCloseNs = 200'000'000;
    static constexpr std::size_t kMaxEntries = 64;
    static constexpr unsigned kLastLooks = 2;  ///< in a row that find nothing, before a sleep
    static constexpr unsigned kMaxLooks = 64;  ///< for these; then it stays awake
    static constexpr std::size_t kArenas = 2;

    /// What the provider has of a piece, for a peer.
    struct Sending {
        fi_context2 context{};  ///< the provider's; first: its address is the operation's
        Piece* piece = nullptr;
        unsigned peer = 0;
        unsigned address = 0;  ///< Outbound::address_of()
    };
    /// What came with a mark, and is passed on once one of its datagrams is taken.
    struct Marked {
        std::span<const std::byte> bytes;
        unsigned racks;
    };
    /// Memory that the provider fills with what comes.
    struct Arena {
        fi_context2 context{};
        std::unique_ptr<std::byte[]> bytes;
        Fid<fid_mr> registration;
        bool is_full = false;  ///< the provider is through with it
    };

    Given give(unsigned peer, const Piece& piece, unsigned racks) noexcept override;
    void open(const EndpointSettings& settings);
    void make_handle();
    void* registered(std::byte* memory, std::size_t bytes, std::uint64_t access, Fid<fid_mr>* keep);
    void post(Arena& arena) noexcept;
    void send_piece(Piece& piece, std::int64_t now) noexcept;
    void make_queue();
    std::size_t progress(std::int64_t now) noexcept;
    [[nodiscard]] bool wakes(std::int64_t now) noexcept;
    void take_entry(const fi_cq_data_entry& entry) noexcept;
    void take_error(std::int64_t now) noexcept;
    void take_piece(std::span<std::byte> bytes) noexcept;
    void pass_on(std::span<const std::byte> bytes, unsigned racks, std::int64_t now) noexcept;
    void note_error(int error) noexcept { counters_.last_error = error; }
    void note_origin(std::span<const std::byte> datagram) noexcept;
    void count() noexcept;
    Sending* sending_for(Piece& piece, unsigned peer);
    void arm(std::int64_t ns) noexcept;

    const unsigned node_, nodes_;
    const Topology topology_;
    Info info_;
    const std::size_t most_at_once_;  ///< bytes of a piece, unless one datagram has more
    Fid<fid_fabric> fabric_;
    Fid<fid_domain> domain_;
    Fid<fid_av> addresses_;
    Fid<fid_cq> queue_;
    std::vector<Fid<fid_mr>> registrations_;
    std::array<Arena, kArenas> arenas_;
    Pieces pieces_;
    Outbound outbound_;
    Fid<fid_ep> endpoint_;  ///< after what it uses: closed first
    std::optional<PeerAddresses> peers_;

    std::vector<Topology::Stop> plan_;
    std::uint64_t planned_at_ = UINT64_MAX;  ///< Outbound::changes()
    Piece* open_ = nullptr;                  ///< into which queue() copies

    std::vector<std::unique_ptr<Sending>> sendings_;
    std::vector<Sending*> spare_;
    std::vector<std::span<std::byte>> fresh_;  ///< pieces that came, not given out yet
    std::vector<std::span<std::byte>> given_;  ///< their datagrams, the caller's
    std::vector<Marked> marked_;               ///< of these
    udp::CarrierCounters counters_;
    std::uint64_t lacked_memory_ = 0;  ///< datagrams for which there was none
    Descriptor handle_, timer_;
    bool has_descriptor_ = false;  ///< the completion queue's
    bool is_armed_ = false;
    std::optional<Connections> connections_;  ///< where they wake instead
};

}  // namespace rmem::fabric
