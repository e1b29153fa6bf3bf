// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The billboard as Fast Messages see it: frames of class fm, nodes that come and go.
///
/// Before its first frame to a node, a node says hello to it: who it is and which binary it runs. A
/// node's incarnation ends when it leaves the ring or dies, which a send to it or a look at it
/// notices.
/// Both layers are told: `forget` when what was on its way to a node is lost, `meet` when a new
/// incarnation of it begins. Since a new one's hello can come before the end of the former one is
/// noticed, each hello begins again what was received, and an end that comes after it concerns only
/// what was sent.
///
/// Invariants: nothing is posted to a node that was not greeted. What arrives is bounded before it
/// is used.
/// Thread safety: the holder of the process endpoint. Progress: only where the caller says so by a
/// deadline.
/// Errors: BBP codes; BBP_EPEER once `forget` has been called.

#include "billboard/core/answer_pause.hpp"
#include "billboard/process/process_endpoint.hpp"
#include "ports/common/counters.hpp"
#include "ports/common/port_endpoint.hpp"
#include "ports/fm/counters.hpp"
#include "ports/fm/frame.hpp"
#include "ports/fm/modules.hpp"
#include "rmem/base/check.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ports::fm {

using billboard::Deadline;

/// What a version of Fast Messages does with its frames.
class Layer {
public:
    /// A frame of it that another call took in. The bytes are the caller's.
    virtual void take_in(unsigned from, std::span<const std::byte> frame) = 0;
    /// What was sent to `node` is lost; `all`: what comes from it ends, too. How much that was, to
    /// tell.
    virtual unsigned forget(unsigned node, bool all) = 0;
    /// An incarnation of `node` begins.
    virtual void meet(unsigned node, const Hello& hello) = 0;

protected:
    ~Layer() = default;
};

class Network {
public:
    struct Settings {
        bool is_quiet = false;
        std::uint16_t window = 0;
    };
    static constexpr unsigned kPollsPerLook = 256;  ///< empty ones, between looks at a node
    static constexpr unsigned kPollsPerChore = 4;   ///< likewise, between a layer's chores

    Network(billboard::ProcessEndpoint& process, Settings settings);
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    /// Before anything else is called; both outlive the last call.
    void set_layers(Layer& fm1, Layer& fm2) noexcept {
        fm1_ = &fm1;
        fm2_ = &fm2;
    }

    [[nodiscard]] const PortEndpoint<billboard::Class::fm>& endpoint() const noexcept {
        return endpoint_;
    }
    PortCounts& counts() noexcept { return counts_; }
    Modules& modules() noexcept { return modules_; }
    unsigned me() const noexcept { return me_; }
    unsigned nodes() const noexcept { return static_cast<unsigned>(peers_.size()); }

    /// Says hello to all, as far as they have room now; the others are greeted with the first
    /// frame.
    void greet_all();

    [[nodiscard]] bool is_greeted(unsigned node) const noexcept { return peers_[node].greeted; }
    /// Posts a frame; greets first. A try for Deadline::now().
    [[nodiscard]] int post(unsigned node, const void* frame, std::size_t size, Deadline deadline);
    /// Greets, and tells the layers of an end if there is one.
    [[nodiscard]] int greet(unsigned node, Deadline deadline);
    /// A frame in two pieces, of kHeadBytes together, to a node that is greeted. False: not now, an
    /// end, or a link that takes longer anyway, so ask post().
    [[nodiscard, gnu::always_inline]] bool post_short(unsigned node,
                                                      std::span<const std::byte> head,
                                                      std::span<const std::byte> payload) {
        RMEM_CHECK_IF(false, is_greeted(node));
        if (!endpoint_.send_joined_at_once(static_cast<int>(node), head, payload)) [[unlikely]]
            return false;
        pause_.sent();
        return true;
    }
    /// What a send of the endpoint said: if BBP_EPEER, the end is told to the layers.
    [[nodiscard]] int heard(unsigned node, int result) {
        if (result == BBP_OK) pause_.sent();
        if (result == BBP_EPEER) [[unlikely]]
            end(node);
        return result;
    }

    /// Whether pointers of this node mean the same here.
    [[nodiscard]] bool runs_another_binary(unsigned node, std::uint32_t module) const noexcept {
        const Peer& p = peers_[node];
        return module == 0 ? p.other_program : p.other_modules;
    }
    /// Whether a new incarnation of it speaks already, while the former one's end was not noticed.
    [[nodiscard]] bool is_ahead(unsigned node) const noexcept { return peers_[node].ahead; }
    /// Whether it has said hello, and not ended.
    [[nodiscard]] bool is_known(unsigned node) const noexcept { return peers_[node].known; }

    /// PortEndpoint::take_at_once, not too soon after what was sent.
    [[nodiscard, gnu::always_inline]] int take_at_once(std::span<std::byte> small,
                                                       std::size_t& bytes) {
        if (!may_look_again()) return endpoint_.kNobody;
        const std::int64_t began = pause_.before_poll();
        const int from = endpoint_.take_at_once(small, bytes);
        pause_.after_poll(from, began);
        return from;
    }
    /// PortEndpoint::take, likewise.
    [[nodiscard]] int take(std::span<std::byte> small, std::span<const std::byte>& frame,
                           Deadline deadline) {
        const std::int64_t began = pause_.before_poll();
        const int from = endpoint_.take(small, frame, deadline);
        pause_.after_poll(from, began);
        return from;
    }
    /// A frame of another layer, or of this one.
    void deliver(unsigned from, std::span<const std::byte> frame);
    void is_corrupt() noexcept { counts_.add(Counter::corrupt); }

    /// Whether a look right behind another costs next to nothing: no link has to be asked.
    [[nodiscard]] bool may_look_again() const noexcept { return endpoint_.fastest() != nullptr; }

    /// After a poll that found nothing: gives the processor away where it is short, and looks at a
    /// node now and then. Whether it is time for what need not be done each time.
    [[nodiscard]] bool found_nothing() {
        rmem::cpu_relax();
        if (++empty_polls_ % kPollsPerLook == 0) [[unlikely]]
            look_around();
        endpoint_.give_way();
        return empty_polls_ % kPollsPerChore == 0;
    }
    /// After a poll that found something.
    void found_something() noexcept { empty_polls_ = 0; }
    /// Whether it has ended; tells the layers if so.
    void look_at(unsigned node);
    /// An end that FM_extract has still to tell.
    [[nodiscard]] bool has_untold_end() noexcept { return std::exchange(end_is_due_, false); }

    /// One line on stderr, unless quiet.
    void say(const std::string& sentence) const;

    /// Depth of handlers that run.
    unsigned handlers = 0;

private:
    struct Peer {
        bool greeted = false;
        bool known = false;  ///< this incarnation has said hello
        bool ahead = false;  ///< in a new one, before the former one's end was noticed
        bool ended = false;  ///< and nothing has come of it since
        bool other_program = false, other_modules = false;
    };

    void end(unsigned node);
    void take_hello(unsigned from, std::span<const std::byte> frame);
    void look_around();
    [[nodiscard]] Hello hello() const;

    const PortEndpoint<billboard::Class::fm> endpoint_;
    Settings settings_;
    PortCounts counts_;
    Modules modules_;
    unsigned me_;
    std::vector<Peer> peers_;
    Layer* fm1_ = nullptr;
    Layer* fm2_ = nullptr;
    billboard::AnswerPause pause_;
    unsigned empty_polls_ = 0;
    unsigned next_look_ = 0;
    bool end_is_due_ = false;
};

/// While a handler runs; what it throws passes through.
class Handling {
public:
    explicit Handling(Network& network) : network_(network) {
        network_.counts().add(Counter::handlers_entered);
        ++network_.handlers;
    }
    ~Handling() {
        --network_.handlers;
        network_.counts().add(Counter::handlers_left);
    }
    Handling(const Handling&) = delete;
    Handling& operator=(const Handling&) = delete;

private:
    Network& network_;
};

}  // namespace ports::fm
