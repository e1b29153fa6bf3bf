// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/fabric_memory.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/error.hpp"
#include "rmem/link/fabric/kept_signals.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace rmem::fabric {

namespace {

constexpr std::size_t kMaxEntries = 16;

void require(ssize_t result, const char* what) {
    if (result == 0) return;
    throw Error(Errc::no_fabric,
                fmt::format("{} failed: {}", what, library().strerror(static_cast<int>(-result))));
}

}  // namespace

FabricMemory::FabricMemory(FarSettings settings)
    : settings_(std::move(settings)), peers_(settings_.ranks) {}

// ---- The endpoint

bool FabricMemory::open() {
    if (std::exchange(is_tried_, true)) return endpoint_ != nullptr;
    try {
        const auto way = settings_.find_way();
        if (!way) return false;
        const KeptSignals kept;
        way_ = *way;
        open_endpoint();
    } catch (const Error& error) {
        close();
        settings_.told(fmt::format("long messages go over the ring: {}", error.what()));
    }
    return endpoint_ != nullptr;
}

/// One that reads and is read from, at the address where other hosts reach this one.
Info FabricMemory::choose() {
    Info hints(library().dupinfo(nullptr));
    if (!hints) throw std::bad_alloc();
    hints->caps = FI_MSG | FI_RMA | FI_READ | FI_REMOTE_READ;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    const char* const ip = way_.ip.empty() ? nullptr : way_.ip.c_str();
    std::vector<std::string> providers(kOverTcp.begin(), kOverTcp.end());
    if (!way_.provider.empty()) providers = {way_.provider};
    for (const std::string& provider : providers) {
        // By name: this provider, which libfabric has called, is not to be asked.
        std::free(std::exchange(hints->fabric_attr->prov_name, ::strdup(provider.c_str())));
        fi_info* found = nullptr;
        const std::uint64_t flags = ip == nullptr ? 0 : FI_SOURCE;
        if (library().getinfo(kApi, ip, nullptr, flags, hints.get(), &found) != 0) continue;
        const Info all(found);
        way_.provider = all->fabric_attr->prov_name;
        Info first(library().dupinfo(all.get()));
        if (!first) throw std::bad_alloc();
        return first;
    }
    throw Error(Errc::no_fabric,
                fmt::format("libfabric has no provider '{}' that reads others' memory{}{}",
                            fmt::join(providers, "' or '"), ip == nullptr ? "" : " at ", way_.ip));
}

void FabricMemory::open_endpoint() {
    info_ = choose();
    if (info_->domain_attr->mr_key_size > sizeof(Place::key)) {
        throw Error(
            Errc::no_fabric,
            fmt::format("the keys of provider '{}' are longer than 8 bytes", way_.provider));
    }
    fid_fabric* fabric = nullptr;
    require(library().fabric(info_->fabric_attr, &fabric, nullptr), "opening the fabric");
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    require(::fi_domain(fabric, info_.get(), &domain, nullptr), "opening the domain");
    domain_.reset(domain);
    fi_av_attr vector{};
    vector.type = FI_AV_TABLE;
    vector.count = peers_.size();
    fid_av* addresses = nullptr;
    require(::fi_av_open(domain, &vector, &addresses, nullptr), "making the address vector");
    addresses_.reset(addresses);
    fi_cq_attr attributes{};
    attributes.size = info_->tx_attr->size + info_->rx_attr->size;
    attributes.format = FI_CQ_FORMAT_CONTEXT;
    attributes.wait_obj = FI_WAIT_NONE;
    fid_cq* queue = nullptr;
    require(::fi_cq_open(domain, &attributes, &queue, nullptr), "making the completion queue");
    queue_.reset(queue);
    fid_ep* made = nullptr;
    require(::fi_endpoint(domain, info_.get(), &made, nullptr), "making the endpoint");
    Fid<fid_ep> endpoint(made);
    require(::fi_ep_bind(made, &addresses->fid, 0), "giving the endpoint addresses");
    require(::fi_ep_bind(made, &queue->fid, FI_TRANSMIT | FI_RECV), "giving the endpoint a queue");
    require(::fi_enable(made), "starting the endpoint");
    name_.resize(kMaxProviderNameBytes);
    std::size_t length = name_.size();
    require(::fi_getname(&made->fid, name_.data(), &length), "asking for the endpoint's address");
    name_.resize(length);
    endpoint_ = std::move(endpoint);
}

/// Nothing is read into, or out of, this rank's memory any more.
void FabricMemory::close() noexcept {
    endpoint_.reset();
    lost_.splice(lost_.end(), reads_);
    for (const auto& read : lost_) read->registration.reset();
    offers_.clear();
    queue_.reset();
    addresses_.reset();
    domain_.reset();
    fabric_.reset();
    name_.clear();
    for (Peer& peer : peers_) {
        peer.name.clear();
        peer.address = FI_ADDR_NOTAVAIL;
        peer.under_way = 0;
    }
}

FabricMemory::Fid<fid_mr> FabricMemory::registered(const void* memory, std::size_t bytes,
                                                   std::uint64_t access) {
    std::uint64_t key = 0;
    if (::getrandom(&key, sizeof key, 0) != sizeof key) return nullptr;
    fid_mr* made = nullptr;
    const int result = ::fi_mr_reg(domain_.get(), memory, bytes, access, 0, key, 0, &made, nullptr);
    return Fid<fid_mr>(result == 0 ? made : nullptr);
}

// ---- The sender's side

bool FabricMemory::reaches(unsigned rank, std::size_t size) {
    if (peers_[rank].reader.is_on() || !settings_.is_elsewhere(rank)) return false;
    return open() && size <= info_->ep_attr->max_msg_size;
}

std::span<const std::byte> FabricMemory::name() {
    return name_;
}

std::optional<FarMemory::Place> FabricMemory::offer(std::span<const std::byte> bytes) {
    if (!endpoint_) return std::nullopt;
    Fid<fid_mr> region = registered(bytes.data(), bytes.size(), FI_REMOTE_READ);
    if (!region) return std::nullopt;
    const bool is_virtual = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    const Place place{is_virtual ? reinterpret_cast<std::uintptr_t>(bytes.data()) : 0,
                      ::fi_mr_key(region.get())};
    offers_[place.key] = std::move(region);
    return place;
}

void FabricMemory::withdraw(const Place& place) noexcept {
    offers_.erase(place.key);
}

void FabricMemory::found_no_reader(unsigned rank) {
    peers_[rank].reader.begin();
    if (std::exchange(peers_[rank].is_reader_told, true)) return;
    settings_.told(fmt::format(
        "rank {} does not read from this one: long messages to it go over the ring", rank));
}

// ---- The receiver's side

bool FabricMemory::meet(unsigned rank, std::span<const std::byte> name) {
    Peer& peer = peers_[rank];
    if (!settings_.is_elsewhere(rank) || !open() || name.size() != name_.size()) return false;
    if (std::equal(name.begin(), name.end(), peer.name.begin(), peer.name.end()))
        return !peer.memory.is_on();
    if (!peer.name.empty()) {  // of a former incarnation
        if (peer.under_way != 0) return false;
        ::fi_av_remove(addresses_.get(), &peer.address, 1, 0);
        peer.name.clear();
    }
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    if (::fi_av_insert(addresses_.get(), name.data(), 1, &address, 0, nullptr) != 1) return false;
    peer.address = address;
    peer.name.assign(name.begin(), name.end());
    peer.refused_ns = 0;
    peer.memory.until_ns = 0;
    return true;
}

void FabricMemory::read(unsigned rank, const Place& place, std::span<std::byte> to,
                        std::uint32_t number) {
    if (!endpoint_ || peers_[rank].name.empty() || peers_[rank].memory.is_on()) {
        ended_.push_back({rank, {number, false}});
        return;
    }
    auto read = std::make_unique<Read>();
    read->rank = rank;
    read->place = place;
    read->to = to;
    read->number = number;
    reads_.push_back(std::move(read));
    give_waiting();
}

/// In the order asked, as far as each rank's connection takes them.
void FabricMemory::give_waiting() {
    for (Peer& peer : peers_) peer.is_full = false;
    for (auto it = reads_.begin(); it != reads_.end();) {
        Read& read = **it++;  // it may end here
        Peer& peer = peers_[read.rank];
        if (read.is_given || peer.is_full) continue;
        const ssize_t result = peer.memory.is_on() ? -FI_EOTHER : give(read);
        if (result == 0) {
            read.is_given = true;
            ++peer.under_way;
            peer.refused_ns = 0;
        } else if (result != -FI_EAGAIN) {
            lose_sight(read.rank, library().strerror(static_cast<int>(-result)));
            end(&read, false);
        } else {
            peer.is_full = true;
            if (peer.under_way != 0) continue;
            const std::int64_t now = now_ns();
            if (peer.refused_ns == 0) peer.refused_ns = now;
            if (now - peer.refused_ns < kMeetNs) continue;
            lose_sight(read.rank, "it cannot be connected to");
            end(&read, false);
            peer.is_full = false;  // its other ones end, too
        }
    }
}

ssize_t FabricMemory::give(Read& read) {
    void* descriptor = nullptr;
    if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0) {
        if (!read.registration)
            read.registration = registered(read.to.data(), read.to.size(), FI_READ);
        if (!read.registration) return -FI_ENOMEM;
        descriptor = ::fi_mr_desc(read.registration.get());
    }
    return ::fi_read(endpoint_.get(), read.to.data(), read.to.size(), descriptor,
                     peers_[read.rank].address, read.place.address, read.place.key, &read.context);
}

void FabricMemory::drop(unsigned rank) noexcept {
    const bool is_written_to = peers_[rank].under_way != 0;
    if (is_written_to) {
        close();
        is_tried_ = false;
    }
    for (Reads* const all : {&reads_, &lost_})
        std::erase_if(*all, [rank](const auto& read) { return read->rank == rank; });
    std::erase_if(ended_, [rank](const EndedOf& one) { return one.rank == rank; });
    if (!is_written_to) return;
    try {
        settings_.told(fmt::format(
            "what is being read from rank {} is not wanted any more: what else is on its way comes "
            "over the ring",
            rank));
    } catch (const std::exception&) {  // no memory for a sentence
    }
}

// ---- Both

std::optional<FarMemory::Ended> FabricMemory::progress() {
    if (!lost_.empty()) {
        const Ended lost{lost_.front()->number, false};
        lost_.pop_front();
        return lost;
    }
    if (ended_.empty() && endpoint_) {
        give_waiting();
        look();
    }
    if (ended_.empty()) return std::nullopt;
    const Ended first = ended_.front().read;
    ended_.pop_front();
    return first;
}

/// The queue's progress is also that of reads which others make here.
void FabricMemory::look() {
    std::array<fi_cq_entry, kMaxEntries> entries;
    const ssize_t count = ::fi_cq_read(queue_.get(), entries.data(), entries.size());
    for (ssize_t i = 0; i < count; ++i)
        end(static_cast<const Read*>(entries[static_cast<std::size_t>(i)].op_context), true);
    if (count != -FI_EAVAIL) return;
    fi_cq_err_entry error{};
    if (::fi_cq_readerr(queue_.get(), &error, 0) == 1)
        end(static_cast<const Read*>(error.op_context), false);
}

/// Of one that is no longer known nothing is told.
void FabricMemory::end(const Read* read, bool is_read) {
    const auto it = std::find_if(reads_.begin(), reads_.end(),
                                 [read](const auto& one) { return one.get() == read; });
    if (it == reads_.end()) return;
    Peer& peer = peers_[read->rank];
    if (read->is_given) --peer.under_way;
    if (is_read) {
        peer.memory = {};
    } else {
        lose_sight(read->rank, "a read has failed");
    }
    ended_.push_back({read->rank, {read->number, is_read}});
    reads_.erase(it);
}

void FabricMemory::lose_sight(unsigned rank, const std::string& why) {
    Peer& peer = peers_[rank];
    if (!peer.memory.is_on()) {
        peer.memory.begin();
        peer.memory.next_ns = std::min(2 * peer.memory.next_ns, kMaxRestNs);
    }
    if (std::exchange(peer.is_memory_told, true)) return;
    settings_.told(
        fmt::format("the memory of rank {} cannot be read through {} ({}): its long messages "
                    "come over the ring",
                    rank, way_.provider, why));
}

std::unique_ptr<FarMemory> make_far_memory(FarSettings settings) {
    return std::make_unique<FabricMemory>(std::move(settings));
}

}  // namespace rmem::fabric
