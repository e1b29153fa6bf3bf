// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Collective operations of groups of ranks: what one has for several of them goes by one post.
///
///     Collectives collectives(device);
///     auto group = collectives.open(id, {0, 2, 3});
///     group->broadcast(bytes, 1);                                   // of member 1
///     while ((result = group->go_on()) == BBP_EAGAIN) device.progress();
///
/// Terms
///   group     ranks in an order of their own, its members. Each of them opens it with the same
///             id, which no other group has that one of them has open
///   number    of a step of the group's operations: each member counts them, and all count alike
///   window    a member may be kWindow messages ahead of another one
///
/// Operations: one at a time per group, all members the same ones in the same order, begun by a
/// call and then tried by go_on() until it says something else than BBP_EAGAIN. No call waits; the
/// device's progress() notices what has arrived. Buffers are the operation's until it is over.
///   broadcast   one multicast per block_most() bytes
///   gather      each member's block to one member, or by a multicast to all of them; at most
///               block_most() bytes
///   barrier     the billboard's (an arrival word per member), if the group was opened with one;
///               else a gather of nothing
///
/// Errors: BBP_EPEER: a member that the operation still needed has died or left; the group cannot
/// be used any more. BBP_ESIZE: a member that this one hears in it has another size in mind; what
/// fits has come, and the group can be used on. BBP_ECORRUPT: one is in another operation; the
/// group cannot be used any more.
/// Memory: of each other member kWindow messages at most.
/// Trust: what other ranks send is checked against the group; a rank that exceeds its window is
/// given up by the device.
/// Thread safety: one thread at a time, together with the device's calls.
/// Source: the paper (§4.2): MPI_Bcast and MPI_Barrier by the billboard's multicast.

#include "billboard/bbp.h"
#include "mpi_channel/device/device.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mpi_channel {

class Group;

class Collectives final : private GroupTraffic {
public:
    static constexpr unsigned kBarriers = 64;  ///< ids of the billboard's barriers

    explicit Collectives(DeviceInterface& device);
    ~Collectives();
    Collectives(const Collectives&) = delete;
    Collectives& operator=(const Collectives&) = delete;

    /// `members`: ranks, among them the own one; `barrier`: the id of a barrier of the billboard,
    /// which all members have reserved. Before a member sends, all have opened it. Throws
    /// std::invalid_argument.
    [[nodiscard]] std::unique_ptr<Group> open(std::uint32_t id, std::vector<int> members,
                                              std::optional<unsigned> barrier = std::nullopt);
    /// An id for a group that this rank is the first member of.
    [[nodiscard]] std::uint32_t new_id() noexcept;
    /// A bit for each barrier of the billboard that this rank has reserved. One is never free
    /// again: it goes with its members.
    [[nodiscard]] std::uint64_t reserved_barriers() const noexcept { return reserved_barriers_; }
    /// False: it is reserved already, as all are where the device has no barriers.
    [[nodiscard]] bool reserve_barrier(unsigned barrier) noexcept;
    [[nodiscard]] std::size_t block_most() const noexcept { return piece_; }

private:
    friend class Group;
    [[nodiscard]] bool on_group_message(unsigned from, std::uint32_t group, std::uint64_t number,
                                        Bytes bytes) override;
    void on_group_flow(unsigned from, std::uint32_t group, std::uint64_t taken) override;

    Group* find(std::uint32_t id);

    DeviceInterface& device_;
    std::size_t piece_;
    std::unordered_map<std::uint32_t, Group*> groups_;
    Group* latest_ = nullptr;  ///< asked for
    std::uint32_t ids_ = 0;
    std::uint64_t reserved_barriers_ = 0;
};

class Group {
public:
    static constexpr unsigned kWindow = 64;

    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    [[nodiscard]] unsigned size() const noexcept { return static_cast<unsigned>(members_.size()); }
    [[nodiscard]] unsigned own() const noexcept { return own_; }

    // ---- Begin an operation
    void broadcast(std::span<std::byte> bytes, unsigned root);
    /// `all` has size() blocks, in the order of the members; it may be null where it is not needed.
    /// `to`: nothing: everybody.
    void gather(std::span<const std::byte> own, std::byte* all, std::optional<unsigned> to);
    void barrier();

    int go_on();

private:
    friend class Collectives;
    using Bytes = std::span<const std::byte>;

    struct Kept {
        std::uint64_t number = 0;
        std::vector<std::byte> bytes;
    };
    /// Another member, as this one knows it.
    struct Member {
        unsigned rank = 0;
        std::uint64_t sent = 0;          ///< messages to it
        std::uint64_t taken = 0;         ///< of these, as far as it has told
        std::uint64_t come = 0;          ///< messages of it that were used
        std::array<Kept, kWindow> kept;  ///< messages of it that were not, as a queue
        unsigned first = 0, count = 0;
        bool is_awaited = false;  ///< by the current step
    };
    enum class Operation : std::uint8_t { none, broadcast, gather, barrier };

    Group(Collectives& collectives, std::uint32_t id, std::vector<int> members,
          std::optional<unsigned> barrier);

    [[nodiscard]] int go_on_with_broadcast();
    [[nodiscard]] int go_on_with_gather();
    [[nodiscard]] int send(std::span<const int> to, Bytes bytes, std::uint64_t mark);
    [[nodiscard]] bool has_window(std::span<const int> to) const;
    void fail(int result);
    void await(unsigned member);
    [[nodiscard]] int take_kept();
    [[nodiscard]] bool take(unsigned from, std::uint64_t number, Bytes bytes);
    void use(unsigned member, std::uint64_t number, Bytes bytes);
    [[nodiscard]] bool is_hopeless() const;
    void on_flow(unsigned from, std::uint64_t taken);
    [[nodiscard]] std::optional<unsigned> index_of(unsigned rank) const noexcept;
    [[nodiscard]] std::span<std::byte> piece() const noexcept;

    Collectives& collectives_;
    DeviceInterface& device_;
    std::uint32_t id_;
    std::optional<unsigned> barrier_;
    std::vector<Member> members_;
    std::vector<int> others_;  ///< ranks
    std::vector<int> sorted_;  ///< ranks, all of them, as the billboard's barrier wants them
    std::vector<std::uint16_t> index_;  ///< of each rank, or kNoMember
    unsigned own_ = 0;

    int failed_ = BBP_OK;  ///< what ended the group

    // The operation that is under way
    Operation operation_ = Operation::none;
    std::uint64_t number_ = 0;
    std::span<std::byte> bytes_;  ///< broadcast
    std::size_t done_ = 0;        ///< of these
    bool is_whole_ = false;       ///< so far as the root goes
    unsigned root_ = 0;
    bool begun_ = false;  ///< broadcast: the current piece is awaited
    Bytes block_;         ///< gather
    std::byte* all_ = nullptr;
    std::optional<unsigned> to_;
    bool is_sent_ = false;
    unsigned awaited_ = 0;        ///< members
    bool is_other_size_ = false;  ///< what a member has sent
};

}  // namespace mpi_channel
