// SPDX-License-Identifier: Apache-2.0
#include "ports/fm/network.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace ports::fm {

Network::Network(billboard::ProcessEndpoint& process, Settings settings)
    : endpoint_(process.endpoint()),
      settings_(settings),
      counts_(*endpoint_, billboard::Class::fm),
      me_(endpoint_->rank()),
      peers_(endpoint_->ranks()) {
    peers_[me_].greeted = peers_[me_].known = true;
}

Hello Network::hello() const {
    Hello hello;
    hello.window = settings_.window;
    hello.program = modules_.program();
    hello.modules = modules_.all();
    return hello;
}

void Network::greet_all() {
    std::vector<int> others;
    for (unsigned node = 0; node < nodes(); ++node) {
        if (node != me_) others.push_back(static_cast<int>(node));
    }
    if (others.empty()) return;
    const Hello mine = hello();
    if (endpoint_.mcast(others, &mine, sizeof mine, Deadline::now()) != BBP_OK) return;
    for (const int node : others) peers_[static_cast<unsigned>(node)].greeted = true;
}

int Network::greet(unsigned node, Deadline deadline) {
    Peer& p = peers_[node];
    if (p.greeted) return BBP_OK;
    const Hello mine = hello();
    const int result = endpoint_.send(static_cast<int>(node), &mine, sizeof mine, deadline);
    if (result == BBP_OK) {
        p.greeted = true;
        p.ended = false;
    }
    return heard(node, result);
}

int Network::post(unsigned node, const void* frame, std::size_t size, Deadline deadline) {
    if (const int result = greet(node, deadline); result != BBP_OK) return result;
    return heard(node, endpoint_.send(static_cast<int>(node), frame, size, deadline));
}

void Network::deliver(unsigned from, std::span<const std::byte> frame) {
    if (frame.empty()) return is_corrupt();
    const auto kind = std::to_integer<std::uint8_t>(frame[0]);
    switch (static_cast<Kind>(kind)) {
        case Kind::hello: return take_hello(from, frame);
        case Kind::four:
        case Kind::buffer:
        case Kind::returned: return fm1_->take_in(from, frame);
        default: break;
    }
    if (static_cast<Kind>(kind) == Kind::credit ||
        (kind & ~(kFirstPacket | kLastPacket)) == static_cast<int>(Kind::packet)) {
        return fm2_->take_in(from, frame);
    }
    is_corrupt();
}

void Network::take_hello(unsigned from, std::span<const std::byte> frame) {
    if (from == me_ || frame.size() != sizeof(Hello)) return is_corrupt();
    const auto hello = read_as<Hello>(frame.data());
    if (hello.version != kVersion) {
        say(fmt::format(
            "node {} speaks version {} of Fast Messages on this ring, not {}; use the same library",
            from, hello.version, kVersion));
        return is_corrupt();
    }
    Peer& p = peers_[from];
    p.ahead = p.known;
    p.known = true;
    p.ended = false;
    p.other_program = hello.program != modules_.program();
    p.other_modules = hello.modules != modules_.all();
    if (p.other_program) {
        counts_.add(Counter::foreign_binaries);
        say(
            fmt::format("node {} runs another binary (its build id's hash is {:016x}, here "
                        "{:016x}), so handlers named "
                        "by pointer are refused; start the same program on all nodes",
                        from, hello.program, modules_.program()));
    }
    fm1_->meet(from, hello);
    fm2_->meet(from, hello);
}

/// An incarnation of the node has ended. Frames to it are lost; its own frames end only
/// if no newer one has spoken. That a node has left is no news unless something is lost with it.
void Network::end(unsigned node) {
    Peer& p = peers_[node];
    if (p.ended) return;
    const bool all = !p.ahead;
    p.ahead = p.greeted = false;
    if (all) p.known = false;
    const unsigned lost1 = fm1_->forget(node, all), lost2 = fm2_->forget(node, all);
    const bool left = endpoint_->has_left(node), lost = lost1 != 0 || lost2 != 0;
    p.ended = true;
    if (left && !lost) return;
    counts_.add(Counter::nodes_lost);
    end_is_due_ = true;
    say(fmt::format("node {} has {}{}", node, left ? "left" : "died",
                    !lost ? ""
                          : fmt::format(": {} frames and {} messages on the way to and from it "
                                        "are lost",
                                        lost1, lost2)));
}

void Network::look_at(unsigned node) {
    if (endpoint_.is_gone(node)) end(node);
}

void Network::look_around() {
    if (++next_look_ >= nodes()) next_look_ = 0;
    if (next_look_ != me_) look_at(next_look_);
}

void Network::say(const std::string& sentence) const {
    if (!settings_.is_quiet) std::fprintf(stderr, "FM: %s\n", sentence.c_str());
}

}  // namespace ports::fm
