// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/peer_addresses.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/link/fabric/library.hpp"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace rmem::fabric {

namespace {

Bootstrap::Name name_of(const udp::Address& address) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(address.port);
    name.sin_addr.s_addr = htonl(address.ip);
    Bootstrap::Name bytes(sizeof name);
    std::memcpy(bytes.data(), &name, sizeof name);
    return bytes;
}

sockaddr_in address_of(const Bootstrap::Name& name) noexcept {
    sockaddr_in address{};
    if (name.size() == sizeof address) std::memcpy(&address, name.data(), sizeof address);
    return address;
}

/// What shm calls the process at that address, and its segment; empty: it is no such address.
std::string shm_segment_of(const Bootstrap::Name& name) {
    const std::string text(reinterpret_cast<const char*>(name.data()),
                           ::strnlen(reinterpret_cast<const char*>(name.data()), name.size()));
    constexpr std::string_view kBefore = "fi_shm://";
    return text.starts_with(kBefore) ? text.substr(kBefore.size()) : "";
}

/// shm ends a process that sends to one that is gone.
bool is_gone(const Bootstrap::Name& name) {
    const std::string segment = shm_segment_of(name);
    if (segment.empty()) return false;
    const int pid = std::atoi(segment.c_str());
    return pid <= 0 || ::kill(pid, 0) != 0 || ::access(("/dev/shm/" + segment).c_str(), F_OK) != 0;
}

/// A node that was killed could not remove its segment.
void remove_segment_of(const Bootstrap::Name& former) {
    const std::string segment = shm_segment_of(former);
    if (!segment.empty() && is_gone(former)) ::shm_unlink(("/" + segment).c_str());
}

}  // namespace

PeerAddresses::PeerAddresses(const EndpointSettings& settings, const fi_info& info, fid_av& vector,
                             fid_ep& endpoint, Outbound& outbound)
    : node_(settings.node),
      nodes_(settings.nodes),
      vector_(vector),
      outbound_(outbound),
      own_name_(Bootstrap::kMaxProviderNameBytes),
      names_(settings.nodes),
      addresses_(settings.nodes),
      peers_(settings.nodes, FI_ADDR_NOTAVAIL),
      heard_(settings.nodes),
      may_have_moved_(settings.nodes) {
    std::size_t length = own_name_.size();
    if (const int error = ::fi_getname(&endpoint.fid, own_name_.data(), &length); error != 0)
        throw Error(Errc::system,
                    fmt::format("asking for the own address: {}", library().strerror(-error)));
    own_name_.resize(length);
    if (!settings.fabric.directory.empty()) {
        bootstrap_.emplace(settings.fabric.directory, settings.ring, info.fabric_attr->prov_name);
        if (const auto former = bootstrap_->find(node_)) remove_segment_of(*former);
        bootstrap_->publish(node_, own_name_);
        find_next_ns_ = 0;
    } else {
        for (unsigned n = 0; n < nodes_; ++n) {
            if (n != node_) set_address(n, name_of(settings.fabric.nodes.at(n)));
        }
    }
}

sockaddr_in PeerAddresses::own_address() const noexcept {
    return address_of(own_name_);
}

void PeerAddresses::withdraw() noexcept {
    if (bootstrap_) bootstrap_->withdraw(node_, own_name_);
}

void PeerAddresses::note_heard(unsigned peer, std::uint64_t incarnation) noexcept {
    if (std::exchange(heard_[peer], incarnation) == incarnation) return;
    may_have_moved_[peer] = true;
    ++moves_;
    find_next_ns_ = std::min(find_next_ns_, found_ns_ + kLeastFindNs);
}

void PeerAddresses::set_address(unsigned peer, const Bootstrap::Name& name) {
    // The old one stays until then: udp;ofi_rxd takes a number that is used again for the old peer.
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    if (::fi_av_insert(&vector_, name.data(), 1, &address, 0, nullptr) != 1) return;
    const fi_addr_t former = std::exchange(peers_[peer], address);
    if (former != FI_ADDR_NOTAVAIL) ::fi_av_remove(&vector_, const_cast<fi_addr_t*>(&former), 1, 0);
    names_[peer] = name;
    addresses_[peer] = address_of(name);
    ++moves_;
    outbound_.has_moved(peer);
}

/// Those that are not reached often, the others now and then.
void PeerAddresses::find(std::int64_t now) noexcept {
    if (!bootstrap_ || now < find_next_ns_) return;
    found_ns_ = now;
    const bool looks_at_all = now >= keep_next_ns_;
    if (looks_at_all) keep_next_ns_ = now + kKeepNs;
    bool lacks_any = false;
    try {
        if (looks_at_all && !bootstrap_->is_published(node_, own_name_))
            bootstrap_->publish(node_, own_name_);
        for (unsigned n = 0; n < nodes_; ++n) {
            if (n == node_) continue;
            const bool is_lost =
                peers_[n] == FI_ADDR_NOTAVAIL || outbound_.is_out(n) || may_have_moved_[n];
            if (!is_lost && !looks_at_all) continue;
            may_have_moved_[n] = false;
            const auto name = bootstrap_->find(n);
            if (name && *name != names_[n] && !is_gone(*name)) set_address(n, *name);
            lacks_any = lacks_any || peers_[n] == FI_ADDR_NOTAVAIL || outbound_.is_out(n);
        }
    } catch (const std::exception&) {  // the directory is not there just now, or no memory
    }
    find_next_ns_ = now + (lacks_any ? kFindNs : kKeepNs);
}

}  // namespace rmem::fabric
