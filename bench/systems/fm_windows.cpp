// SPDX-License-Identifier: Apache-2.0
//
// Return-to-sender against windows, which the paper of Fast Messages leaves open (section 5): the
// same frames, senders 1 to n and the receiver 0, under three ways to divide its queue, by variant:
//   returned      of kPlaces for all; what finds none goes back
//   same_memory   of kPlaces, divided: each sender has a window of kPlaces / n
//   own_windows   a window of kPlaces for each sender, n times the memory
// On the library's core, whose windows no program can choose.
#include "bench/systems/ring.hpp"

#include "ports/fm/fm1.hpp"

#include <memory>

namespace {

using namespace bench;
using ports::fm::Fm1;
using ports::fm::Kind;

constexpr unsigned kPlaces = 64;

int received;
void note(int, int, int, int) {
    ++received;
}

/// There are no packets of 2.x here.
class Nothing final : public ports::fm::Layer {
public:
    void take_in(unsigned, std::span<const std::byte>) override {}
    unsigned forget(unsigned, bool) override { return 0; }
    void meet(unsigned, const ports::fm::Hello&) override {}
};

struct Way {
    unsigned places, to_one;  ///< of the receive queue; frames on their way from one sender
};
Way way_of(const std::string& name, unsigned senders) {
    if (name == "same_memory") return {kPlaces, std::max(1U, kPlaces / senders)};
    if (name == "own_windows") return {kPlaces * senders, kPlaces};
    return {kPlaces, Fm1::kMaxSlots};
}

class WindowsChannel : Joined {
public:
    WindowsChannel(const Setup& setup, const std::string& ring, int rank, Meeting& meeting, Way way)
        : Joined(setup, ring, rank),
          rank_(rank),
          meeting_(meeting),
          network_(*process_, {.is_quiet = true, .window = std::uint16_t(way.to_one)}),
          fm1_(network_, {.slots = Fm1::kDefaultSlots, .queue = way.places, .to_one = way.to_one}) {
        network_.set_layers(fm1_, nothing_);
        checked(bbp_barrier());
    }
    ~WindowsChannel() { fm1_.settle(process_->endpoint().deadline_in(1'000'000'000)); }

    void send_to(int, const void*, std::size_t) {
        const int words[4] = {};
        const auto* const handler = reinterpret_cast<const void*>(&note);
        auto held = process_->hold();
        if (fm1_.try_send(0, Kind::four, handler, words, sizeof words)) return;
        require(fm1_.send(held, 0, Kind::four, handler, words, sizeof words) == 0,
                "the receiver is gone");
    }
    void receive_any(void*, std::size_t) {
        while (received == 0) fm1_.extract();
        --received;
    }
    /// What went back is sent again meanwhile.
    void share(std::uint64_t& word) {
        meeting_.share(rank_, word, [&] { fm1_.extract(); });
    }
    /// Frames that went back, since the last step.
    Numbers news() {
        const auto before = std::exchange(returned_, network_.counts().get(FM_FRAMES_REJECTED));
        return {{"returned", double(returned_ - before)}};
    }

private:
    int rank_;
    Meeting& meeting_;
    std::shared_ptr<billboard::ProcessEndpoint> process_ = billboard::ProcessEndpoint::open();
    Nothing nothing_;
    ports::fm::Network network_;
    Fm1 fm1_;
    std::uint64_t returned_ = 0;
};

}  // namespace

int bench::measure(const Setup& setup) {
    const std::string ring = name_of_ring();
    const Way way = way_of(setup.variant, unsigned(setup.ranks) - 1);
    return measure_ranks(
        setup,
        [&](int rank, Meeting& meeting) { return WindowsChannel(setup, ring, rank, meeting, way); },
        Pinned::when_joined);
}
