// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/collectives.hpp"

#include "mpi_channel/device/packets.hpp"
#include "rmem/base/copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace mpi_channel {

namespace {

constexpr std::uint16_t kNoMember = 0xffff;
/// In the number of a broadcast's piece that others follow.
constexpr std::uint64_t kMoreFollow = std::uint64_t{1} << 63;
/// An id has its first member's rank above this number of bits of count.
constexpr unsigned kCountBits = 20;
static_assert(rmem::kMaxRanks <= 1U << (32 - kCountBits) && rmem::kMaxRanks < kNoMember);

}  // namespace

// ---- Collectives

Collectives::Collectives(DeviceInterface& device)
    : device_(device),
      piece_(device.packet_most() - kHeaderBytes),
      reserved_barriers_(device.has_barriers() ? 0 : ~std::uint64_t{0}) {
    device_.set_group_traffic(this);
}

Collectives::~Collectives() {
    device_.set_group_traffic(nullptr);
}

std::unique_ptr<Group> Collectives::open(std::uint32_t id, std::vector<int> members,
                                         std::optional<unsigned> barrier) {
    if (groups_.count(id) != 0)
        throw std::invalid_argument(
            fmt::format("group {:#x} is open already; give each group an id of its own", id));
    std::unique_ptr<Group> group(new Group(*this, id, std::move(members), barrier));
    groups_[id] = group.get();
    return group;
}

std::uint32_t Collectives::new_id() noexcept {
    std::uint32_t id = 0;
    do {
        id = device_.rank() << kCountBits | (ids_++ & ((1U << kCountBits) - 1));
    } while (groups_.count(id) != 0);
    return id;
}

bool Collectives::reserve_barrier(unsigned barrier) noexcept {
    if (barrier >= kBarriers) return false;
    const std::uint64_t bit = std::uint64_t{1} << barrier;
    if ((reserved_barriers_ & bit) != 0) return false;
    reserved_barriers_ |= bit;
    return true;
}

/// Of a group that is not open: it had failed here, or the sender is another program.
bool Collectives::on_group_message(unsigned from, std::uint32_t group, std::uint64_t number,
                                   Bytes bytes) {
    Group* const found = find(group);
    return found == nullptr || found->take(from, number, bytes);
}

Group* Collectives::find(std::uint32_t id) {
    if (latest_ != nullptr && latest_->id_ == id) return latest_;
    const auto it = groups_.find(id);
    if (it != groups_.end()) latest_ = it->second;
    return it == groups_.end() ? nullptr : it->second;
}

void Collectives::on_group_flow(unsigned from, std::uint32_t group, std::uint64_t taken) {
    if (Group* const found = find(group)) found->on_flow(from, taken);
}

// ---- Group

Group::Group(Collectives& collectives, std::uint32_t id, std::vector<int> members,
             std::optional<unsigned> barrier)
    : collectives_(collectives),
      device_(collectives.device_),
      id_(id),
      barrier_(barrier),
      members_(members.size()),
      sorted_(members),
      index_(device_.ranks(), kNoMember) {
    bool has_own = false;
    for (unsigned i = 0; i < members.size(); ++i) {
        const auto rank = static_cast<unsigned>(members[i]);
        if (rank >= index_.size() || index_[rank] != kNoMember)
            throw std::invalid_argument(
                fmt::format("member {} of a group is rank {}; give ranks of 0 to {}, each once", i,
                            rank, index_.size() - 1));
        index_[rank] = static_cast<std::uint16_t>(i);
        members_[i].rank = rank;
        if (rank == device_.rank()) {
            own_ = i;
            has_own = true;
        } else {
            others_.push_back(members[i]);
        }
    }
    if (!has_own)
        throw std::invalid_argument(
            fmt::format("rank {} is no member of the group that it opens; add it to the members",
                        device_.rank()));
    std::sort(sorted_.begin(), sorted_.end());
}

Group::~Group() {
    collectives_.groups_.erase(id_);
    collectives_.latest_ = nullptr;
}

void Group::broadcast(std::span<std::byte> bytes, unsigned root) {
    operation_ = bytes.empty() || members_.size() == 1 ? Operation::none : Operation::broadcast;
    bytes_ = bytes;
    root_ = root;
    done_ = 0;
    begun_ = false;
    is_whole_ = false;
}

void Group::gather(Bytes own, std::byte* all, std::optional<unsigned> to) {
    if (failed_ != BBP_OK) return;
    operation_ = Operation::gather;
    block_ = own;
    all_ = all;
    to_ = to;
    is_sent_ = others_.empty() || to == own_;
    const bool receives = !to || to == own_;
    if (receives && !own.empty()) std::copy(own.begin(), own.end(), all + own_ * own.size());
    for (unsigned i = 0; receives && i < members_.size(); ++i) {
        if (i != own_) await(i);
    }
}

void Group::barrier() {
    if (!barrier_) return gather({}, nullptr, std::nullopt);
    operation_ = Operation::barrier;
}

int Group::go_on() {
    if (failed_ != BBP_OK) return failed_;
    int result = BBP_OK;
    switch (operation_) {
        case Operation::none: return BBP_OK;
        case Operation::broadcast: result = go_on_with_broadcast(); break;
        case Operation::gather: result = go_on_with_gather(); break;
        case Operation::barrier: result = device_.barrier(sorted_, *barrier_); break;
    }
    if (result == BBP_EAGAIN && operation_ != Operation::barrier && is_hopeless())
        result = BBP_EPEER;
    if (result == BBP_EAGAIN) return result;
    operation_ = Operation::none;
    if (result != BBP_OK) fail(result);
    return std::exchange(is_other_size_, false) && result == BBP_OK ? BBP_ESIZE : result;
}

/// The operation's buffers are the caller's again, so what still comes goes nowhere.
void Group::fail(int result) {
    failed_ = result;
    awaited_ = 0;
    for (Member& member : members_) member.is_awaited = false;
}

/// The next piece of a broadcast: its bytes, or the room for them.
std::span<std::byte> Group::piece() const noexcept {
    return bytes_.subspan(done_, std::min(bytes_.size() - done_, collectives_.piece_));
}

/// Which piece is the last one the root says: a receiver with another size in mind takes as many as
/// there are.
int Group::go_on_with_broadcast() {
    while (!is_whole_ || begun_) {
        if (root_ == own_) {
            const std::span<std::byte> next = piece();
            const bool is_last = done_ + next.size() == bytes_.size();
            const int result = send(others_, next, is_last ? 0 : kMoreFollow);
            if (result != BBP_OK) return result;
            done_ += next.size();
            is_whole_ = is_last;
        } else {
            if (!std::exchange(begun_, true)) await(root_);
            if (const int result = take_kept(); result != BBP_OK) return result;
            begun_ = false;
        }
        ++number_;
    }
    return BBP_OK;
}

int Group::go_on_with_gather() {
    if (!is_sent_) {
        const int to = to_ ? static_cast<int>(members_[*to_].rank) : 0;
        const std::span<const int> receivers = to_ ? std::span(&to, 1) : std::span(others_);
        if (const int result = send(receivers, block_, 0); result != BBP_OK) return result;
        is_sent_ = true;
    }
    if (const int result = take_kept(); result != BBP_OK) return result;
    ++number_;
    return BBP_OK;
}

// ---- Sending

int Group::send(std::span<const int> to, Bytes bytes, std::uint64_t mark) {
    if (!has_window(to)) return BBP_EAGAIN;
    const int result = device_.post_to_group(to, id_, number_ | mark, bytes);
    if (result != BBP_OK) return result;
    for (const int rank : to) ++members_[index_[static_cast<unsigned>(rank)]].sent;
    return BBP_OK;
}

bool Group::has_window(std::span<const int> to) const {
    return std::all_of(to.begin(), to.end(), [&](int rank) {
        const Member& member = members_[index_[static_cast<unsigned>(rank)]];
        return member.sent - member.taken < kWindow;
    });
}

void Group::on_flow(unsigned from, std::uint64_t taken) {
    const auto i = index_of(from);
    if (!i) return;
    Member& member = members_[*i];
    if (taken > member.taken && taken <= member.sent) member.taken = taken;
}

// ---- Receiving

void Group::await(unsigned member) {
    members_[member].is_awaited = true;
    ++awaited_;
}

/// Whether all is here that the current step awaits.
int Group::take_kept() {
    for (Member& member : members_) {
        if (awaited_ == 0) break;
        if (!member.is_awaited || member.count == 0) continue;
        Kept& kept = member.kept[member.first];
        if ((kept.number & ~kMoreFollow) != number_) return BBP_ECORRUPT;
        member.first = (member.first + 1) % kWindow;
        --member.count;
        use(static_cast<unsigned>(&member - members_.data()), kept.number, kept.bytes);
    }
    return awaited_ == 0 ? BBP_OK : BBP_EAGAIN;
}

/// Into its place, if this is what the current step awaits; else it is kept. False: its sender has
/// been told of no room for it.
bool Group::take(unsigned from, std::uint64_t number, Bytes bytes) {
    const auto i = index_of(from);
    if (!i || failed_ != BBP_OK) return true;
    Member& member = members_[*i];
    if (member.is_awaited && member.count == 0 && (number & ~kMoreFollow) == number_) {
        use(*i, number, bytes);
        return true;
    }
    if (member.count == kWindow) return false;
    Kept& kept = member.kept[(member.first + member.count++) % kWindow];
    kept.number = number;
    kept.bytes.assign(bytes.begin(), bytes.end());
    return true;
}

/// As many bytes as fit; the operation goes on, as its sender's does.
void Group::use(unsigned i, std::uint64_t number, Bytes bytes) {
    Member& member = members_[i];
    member.is_awaited = false;
    --awaited_;
    std::span<std::byte> room;
    if (operation_ == Operation::broadcast) {
        room = piece();
    } else if (!block_.empty()) {
        room = {all_ + i * block_.size(), block_.size()};
    }
    is_other_size_ |= bytes.size() != room.size();
    const std::size_t fits = std::min(bytes.size(), room.size());
    if (fits != 0) rmem::copy_bytes(room.data(), bytes.data(), fits);
    if (operation_ == Operation::broadcast) {
        done_ += fits;
        is_whole_ = (number & kMoreFollow) == 0;
        is_other_size_ |= is_whole_ != (done_ == bytes_.size());
    }
    if (++member.come % (kWindow / 2) == 0) device_.tell_group_flow(member.rank, id_, member.come);
}

/// Whether a member has gone that the operation still needs: one that has done its part may leave,
/// and does at a program's end.
bool Group::is_hopeless() const {
    const bool sends = operation_ == Operation::broadcast ? root_ == own_ : !is_sent_;
    for (unsigned i = 0; i < members_.size(); ++i) {
        const bool is_receiver = sends && (operation_ == Operation::broadcast || !to_ || *to_ == i);
        if ((members_[i].is_awaited || is_receiver) && device_.is_gone(members_[i].rank))
            return true;
    }
    return false;
}

std::optional<unsigned> Group::index_of(unsigned rank) const noexcept {
    if (rank >= index_.size() || index_[rank] == kNoMember) return std::nullopt;
    return index_[rank];
}

}  // namespace mpi_channel
