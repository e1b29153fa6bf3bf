// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One rank's endpoint among hostile peers (tests/support/hostile_bank.hpp): random calls, each of
/// which must end, with a code that bbp.h documents for it, and never touch what is not its own.

#include "billboard/core/endpoint_core.hpp"
#include "tests/support/hostile_bank.hpp"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace rmem::test {

inline constexpr std::size_t kHostilePlace = 1024 + 64;  ///< data partition
inline constexpr std::size_t kHostileLarge = 200'000;    ///< with it, messages filled late fit, too

/// What is read of hostile peers: anything, at any time, or nothing.
class HostileFar final : public FarMemory {
public:
    explicit HostileFar(Choices& choices) : choices_(choices) {}

    bool reaches(unsigned, std::size_t) override { return choices_.below(4) != 0; }
    std::span<const std::byte> name() override { return name_; }
    std::optional<Place> offer(std::span<const std::byte>) override {
        if (choices_.below(8) == 0) return std::nullopt;
        ++offers_;
        return Place{1, 2};
    }
    void withdraw(const Place&) noexcept override { --offers_; }
    void found_no_reader(unsigned) override {}
    bool meet(unsigned, std::span<const std::byte> name) override {
        return name.size() <= billboard::kMaxFarName && choices_.below(4) != 0;
    }
    void read(unsigned rank, const Place&, std::span<std::byte> to, std::uint32_t number) override {
        reads_.push_back({rank, to, number});
    }
    void drop(unsigned rank) noexcept override {
        std::erase_if(reads_, [rank](const Read& read) { return read.rank == rank; });
    }
    std::optional<Ended> progress() override {
        // Of none; not once the choices are used up, since that would be without end.
        if (choices_.below(8) == 7) return Ended{choices_.word(), true};
        if (reads_.empty() || choices_.below(3) == 0) return std::nullopt;
        const auto it = reads_.begin() + choices_.below(static_cast<std::uint32_t>(reads_.size()));
        const Read read = *it;
        reads_.erase(it);
        std::fill(read.to.begin(), read.to.end(), std::byte{5});
        return Ended{read.number, choices_.below(8) != 0};
    }
    bool is_busy() const noexcept override { return !reads_.empty() || offers_ != 0; }

private:
    struct Read {
        unsigned rank;
        std::span<std::byte> to;
        std::uint32_t number;
    };
    Choices& choices_;
    std::vector<std::byte> name_ = std::vector<std::byte>(16, std::byte{1});
    std::vector<Read> reads_;
    unsigned offers_ = 0;
};

/// The calls of one run.
class HostileCalls {
public:
    HostileCalls(billboard::Endpoint& endpoint, const billboard::Geometry& geometry,
                 HostileBank& bank, Choices& choices)
        : endpoint_(endpoint),
          geometry_(geometry),
          bank_(bank),
          choices_(choices),
          buffer_(kMaxCap),
          message_(kFarLeast + kHostilePlace) {}

    void one() {
        bank_.begin_call();
        for (unsigned acts = choices_.below(4); acts > 0; --acts) bank_.act();
        try {
            call();
        } catch (const std::bad_alloc&) {  // BBP_ENOMEM, in C
        } catch (const std::exception& e) {
            bank_.violate(fmt::format("a call threw: {}", e.what()));
        }
    }

private:
    static constexpr std::size_t kMaxCap = 8192;
    static constexpr int kRanks = HostileBank::kRanks;

    struct View {
        const std::byte* data;
        std::size_t size;
    };

    void call() {
        const bool tries = choices_.below(3) == 0;
        const Deadline deadline = tries ? Deadline::now() : Deadline{0};  // passes by waits
        const int waited = tries ? BBP_EAGAIN : BBP_ETIMEDOUT;
        const int src = static_cast<int>(choices_.below(kRanks + 1)) - 1;
        const int dest = static_cast<int>(choices_.below(kRanks));
        const std::size_t size = some_size();
        const auto cls = static_cast<billboard::Class>(choices_.below(8) == 0 ? 6U : 0U);
        const int others[] = {1, 2};
        switch (choices_.below(16)) {
            case 0:
            case 1:
            case 2:
            case 3: return receive(src, deadline, waited, cls);
            case 4:
            case 5: return view(src, deadline, waited, cls);
            case 6: return release();
            case 7: {
                std::size_t len = 0;
                const int code = endpoint_.probe(src, &len, cls);
                is_sender(code, src, "probe", {BBP_EAGAIN, BBP_ECORRUPT, BBP_EPEER});
                return;
            }
            case 8:
                return is_in(endpoint_.available(src, cls), "available",
                             {0, 1, BBP_ECORRUPT, BBP_EPEER});
            case 9:
                return is_in(endpoint_.send(dest, message_.data(), size, deadline, cls), "send",
                             {BBP_OK, waited, BBP_EPEER, tries ? BBP_ESIZE : BBP_OK});
            case 10:
                return is_in(endpoint_.mcast(others, message_.data(), size, deadline, cls), "mcast",
                             {BBP_OK, waited, BBP_EPEER, tries ? BBP_ESIZE : BBP_OK});
            case 11: return compose(dest, size, deadline, waited);
            case 12:
                return is_in(endpoint_.barrier(deadline), "barrier",
                             {BBP_OK, waited, BBP_EPEER, BBP_ECORRUPT, BBP_ESIZE});
            case 13: {
                const int members[] = {0, 1};
                return is_in(endpoint_.barrier_group(members, 9, deadline), "barrier_group",
                             {BBP_OK, waited, BBP_EPEER, BBP_ECORRUPT, BBP_ESIZE});
            }
            case 14:
                is_in(endpoint_.group_join("team"), "group_join", {BBP_OK, BBP_ENOMEM});
                return is_in(endpoint_.mcast_group("team", message_.data(), size, deadline),
                             "mcast_group",
                             {0, 1, 2, waited, BBP_EPEER, tries ? BBP_ESIZE : BBP_OK});
            default:
                return is_in(endpoint_.group_leave("team"), "group_leave", {BBP_OK, BBP_EINVAL});
        }
    }

    void receive(int src, Deadline deadline, int waited, billboard::Class cls) {
        const std::size_t cap = choices_.below(3) == 0 ? choices_.below(80) : some_cap();
        std::size_t size = 0;
        std::byte* to = cap == 0 ? nullptr : buffer_.last(cap);
        const int code = endpoint_.recv(src, to, cap, &size, deadline, cls);
        if (is_sender(code, src, "recv", {waited, BBP_ESIZE, BBP_EPEER, BBP_ECORRUPT}) &&
            size > cap) {
            bank_.violate(fmt::format("recv gave {} bytes into a buffer of {}", size, cap));
        }
        if (code == BBP_ESIZE && (size <= cap || size > billboard::kMaxMessageBytes)) {
            bank_.violate(
                fmt::format("recv told BBP_ESIZE for {} bytes and a buffer of {}", size, cap));
        }
    }
    void view(int src, Deadline deadline, int waited, billboard::Class cls) {
        const void* data = nullptr;
        std::size_t size = 0;
        const int code = endpoint_.view(src, &data, &size, deadline, cls);
        if (!is_sender(code, src, "view", {waited, BBP_ESIZE, BBP_EPEER, BBP_ECORRUPT})) return;
        if (data == nullptr) return bank_.violate("view gave no address");
        const View view{static_cast<const std::byte*>(data), size};
        const std::byte* bank = bank_.own(0);
        const std::byte* end =
            bank + geometry_.partition(HostileBank::kRanks - 1) + geometry_.partition_bytes();
        if (view.data >= bank && view.data < end) {
            const std::byte* from = bank + geometry_.data(static_cast<unsigned>(code));
            if (view.data < from || view.data + size > from + geometry_.data_bytes())
                return bank_.violate("view gave bytes outside the sender's data partition");
        }
        read(view);
        views_.push_back(view);
        if (views_.size() > 8) release();
    }
    void release() {
        if (views_.empty()) return;
        const std::size_t which = choices_.below(static_cast<std::uint32_t>(views_.size()));
        const View view = views_[which];
        views_.erase(views_.begin() + static_cast<std::ptrdiff_t>(which));
        read(view);
        is_in(endpoint_.release(view.data), "release", {BBP_OK});
    }
    /// As a user would; an address sanitizer sees it, and so do the guard pages.
    void read(const View& view) {
        for (std::size_t i = 0; i < view.size; ++i)
            sum_ = sum_ + std::to_integer<int>(view.data[i]);
    }
    void compose(int dest, std::size_t size, Deadline deadline, int waited) {
        void* to = nullptr;
        const int code = endpoint_.compose(size, &to);
        is_in(code, "compose", {BBP_OK, BBP_EAGAIN, BBP_ESIZE});
        if (code != BBP_OK) return;
        bank_.store(static_cast<std::size_t>(static_cast<std::byte*>(to) - bank_.own(0)),
                    message_.data(), size);
        if (choices_.below(3) == 0) return is_in(endpoint_.discard(to), "discard", {BBP_OK});
        const int posted = endpoint_.post({&dest, 1}, to, size, deadline);
        is_in(posted, "post", {BBP_OK, waited, BBP_EPEER});
        if (posted == waited) is_in(endpoint_.discard(to), "discard", {BBP_OK});
    }

    std::size_t some_size() {
        switch (choices_.below(4)) {
            case 0: return choices_.below(61);
            case 1: return choices_.below(kHostilePlace);
            case 2:
                return (choices_.below(2) == 0 ? kFarLeast : kHostilePlace) +
                       choices_.below(kHostilePlace);
            default: return choices_.below(200);
        }
    }
    std::size_t some_cap() { return choices_.below(2) == 0 ? kMaxCap : kHostilePlace; }

    void is_in(int code, const char* what, std::initializer_list<int> allowed) {
        for (const int each : allowed) {
            if (code == each) return;
        }
        bank_.violate(fmt::format("{} returned {}", what, code));
    }
    /// Whether `code` is a sender's rank; if not, it must be one of the errors.
    bool is_sender(int code, int src, const char* what, std::initializer_list<int> errors) {
        if (code < 0) {
            is_in(code, what, errors);
            return false;
        }
        if (code >= kRanks || (src != BBP_ANY && code != src))
            bank_.violate(fmt::format("{} from {} returned {}", what, src, code));
        return code < kRanks;
    }

    billboard::Endpoint& endpoint_;
    const billboard::Geometry& geometry_;
    HostileBank& bank_;
    Choices& choices_;
    GuardedBytes buffer_;
    std::vector<std::byte> message_;
    std::vector<View> views_;
    volatile int sum_ = 0;
};

/// Makes calls until the choices are used up, or for `steps` calls. Returns what went wrong, or "".
template <bool Replicated, template <class> class Board>
std::string run_among_hostile_peers(const std::shared_ptr<Ring>& ring, billboard::Layout layout,
                                    Choices& choices, unsigned steps) {
    using Core = billboard::EndpointCore<HostileMemory<Replicated>, Board>;
    billboard::Settings settings;
    settings.board = {layout, choices.below(8) == 0 ? kHostileLarge : kHostilePlace};
    settings.barrier =
        choices.below(3) == 0 ? billboard::BarrierKind::paper : billboard::BarrierKind::arrival;
    const billboard::Geometry geometry(ring->config(), settings.board);
    HostileBank bank(geometry, ring->config().user_bytes + geometry.region_bytes(), choices);
    // relaxed is enough: one thread. Every run is its rank's first incarnation.
    ring->rank(0).incarnation.store(0, std::memory_order_relaxed);
    std::unique_ptr<Core> endpoint;
    try {
        endpoint = std::make_unique<Core>(ring, Member{0, 0}, settings, Deadline{0},
                                          typename HostileMemory<Replicated>::Options{&bank});
    } catch (const Error& e) {
        return e.code() == Errc::timed_out ? bank.violation() : e.what();
    }
    if (choices.below(2) == 0) endpoint->use_far(std::make_unique<HostileFar>(choices));
    HostileCalls calls(*endpoint, geometry, bank, choices);
    for (unsigned i = 0; i < steps && !choices.used_up() && bank.violation().empty(); ++i)
        calls.one();
    bank.begin_call();
    endpoint.reset();
    return bank.violation();
}

/// The ring that such runs are members of; its own bank is not used.
inline std::shared_ptr<Ring> hostile_ring(const std::string& name,
                                          LinkKind link = LinkKind::direct) {
    RingConfig config;
    config.link = link;
    config.name = name;
    config.nodes = config.ranks = HostileBank::kRanks;
    config.user_bytes = 4096;
    return Ring::open(config, Deadline::in(10'000'000'000));
}

}  // namespace rmem::test
