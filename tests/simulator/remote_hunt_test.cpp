// SPDX-License-Identifier: Apache-2.0

/// Clients of a served node on simulated connections that are cut, beside a model: the last value
/// that each writer has given to its own word. Each seed is a run. What overtakes what within one
/// connection is tests/remote/agreement_test.cpp's.

#include "remote/session.hpp"
#include "remote/view.hpp"
#include "rmem/base/check.hpp"
#include "tests/support/c_nodes.hpp"
#include "tests/support/child.hpp"
#include "tests/support/cut_line.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <list>
#include <optional>
#include <vector>

namespace simulator {
namespace {

using namespace remote;
using rmem::test::kBytes;

constexpr unsigned kWriters = 3;        ///< two clients, and the other node
constexpr std::size_t kLimitPages = 1;  ///< that a look compares, of two
constexpr std::uint64_t kNumbers = 1;
constexpr std::uint64_t kPlaces[kWriters] = {64, kPageBytes + 64, kPageBytes + 68};

/// One client, its session, and the two connections between them, which are cut together.
class Client {
public:
    Client(rmem_node* node, Twins& twins, unsigned writer, std::uint64_t seed)
        : node_(node),
          twins_(twins),
          writer_(writer),
          random_(seed),
          calls_(seed, 2),
          news_(seed + 1, 2) {}

    void store() { write(true); }
    void call() { write(false); }
    void ask() {
        if (shown_ == 0) return;
        collect();
        post(Kind::read, kPlaces[writer_], std::uint32_t{kWordBytes});
        asked_.push_back(value_);
    }
    void interrupt(const rmem_interrupt& interrupt) {
        if (session_) session_->on_interrupt(interrupt);
    }
    void cut(std::int64_t now_ns) {
        calls_.cut(now_ns);
        news_.cut(now_ns);
    }
    void run(std::int64_t now_ns) {
        if (calls_.cuts() + news_.cuts() != cuts_) cut(now_ns);
        cuts_ = calls_.cuts() + news_.cuts();
        const bool is_over =
            calls_.number(0) + calls_.number(1) + news_.number(0) + news_.number(1) == 0;
        calls_.run(now_ns, is_over);
        news_.run(now_ns, is_over);
        serve(now_ns);
        live(now_ns);
    }
    /// All that the bank has is in the view, and what it has of this client is its last.
    bool is_settled() {
        std::vector<std::byte> bank(2 * kPageBytes);
        EXPECT_EQ(rmem_read(node_, 0, bank.data(), bank.size()), RMEM_OK);
        return view_ && shown_ == 1 && rmem_load(node_, kPlaces[writer_]) == value_ &&
               std::memcmp(bank.data(), view_->memory(), bank.size()) == 0;
    }
    std::uint64_t cuts() const { return cuts_; }
    std::uint64_t told = 0, answered = 0;

private:
    // ---- The server's side
    void serve(std::int64_t now_ns) {
        const bool is_there = calls_.number(1) != 0 && news_.number(1) != 0;
        if (session_ && (!is_there || calls_.number(1) != number_)) session_.reset();
        if (!is_there) return;
        if (!session_) {
            number_ = calls_.number(1);
            session_.emplace(node_, number_, twins_);
        }
        session_->receive(calls_.take(1, now_ns));
        session_->run(now_ns);
        EXPECT_FALSE(session_->is_broken());
        session_->look(kLimitPages);
        calls_.send(1, session_->answers(), now_ns);
        news_.send(1, session_->news(), now_ns);
    }

    // ---- The client's side
    void live(std::int64_t now_ns) {
        const bool is_there = calls_.number(0) != 0 && news_.number(0) != 0;
        if (!is_there || calls_.number(0) != own_number_) forget();
        if (!is_there) return;
        if (!view_) begin();
        hear(calls_.take(0, now_ns), answers_);
        hear(news_.take(0, now_ns), told_);
        if (random_.one_in(2)) collect();
        calls_.send(0, out_, now_ns);
    }
    void forget() {
        view_.reset();
        out_ = {};
        asked_.clear();
        answers_.emplace(kMaxBodyBytes);
        told_.emplace(kMaxBodyBytes);
        writes_ = shown_ = 0;
        seen_ = {};
    }
    void begin() {
        own_number_ = calls_.number(0);
        view_.emplace(kBytes);
        post(Kind::accept, kNumbers);
        post(Kind::map, std::uint64_t{0}, std::uint64_t{2 * kPageBytes});
        view_->map(0, 2 * kPageBytes);
    }
    template <class... Fields>
    void post(Kind kind, const Fields&... fields) {
        FrameWriter frame(out_.bytes(), kind);
        (frame.put(fields), ...);
    }
    /// A value that is greater than all before it: by a plain store, or by a call.
    void write(bool is_store) {
        if (shown_ == 0) return;
        ++value_;
        const std::uint64_t at = kPlaces[writer_];
        if (is_store) {
            std::memcpy(view_->memory() + at, &value_, sizeof value_);
            return;
        }
        collect();
        post(Kind::write, at, value_);
        view_->wrote(at, std::as_bytes(std::span(&value_, 1)), ++writes_);
    }
    void collect() {
        view_->collect(
            0, kBytes,
            [this](std::uint64_t at, std::span<const std::byte> words, rmem::WordPart part) {
                EXPECT_EQ(at, kPlaces[writer_]) << "what came was taken for a store";
                post(Kind::write_part, at, words, std::uint32_t{part});
                return ++writes_;
            });
    }
    void hear(const std::vector<std::byte>& came, std::optional<FrameQueue>& frames) {
        frames->add(came);
        for (; const auto frame = frames->front(); frames->pop()) take(*frame);
        EXPECT_FALSE(frames->is_broken());
    }
    void take(const Frame& frame) {
        FieldReader fields(frame.body);
        if (kind_of(frame) == Kind::data) {
            EXPECT_EQ(fields.take<std::uint32_t>(), asked_.front()) << "calls out of order";
            asked_.erase(asked_.begin());
            ++answered;
        } else if (kind_of(frame) == Kind::change) {
            const auto known = fields.take<std::uint64_t>();
            const auto offset = fields.take<std::uint64_t>();
            view_->changed(offset, fields.rest(), known);
            look();
        } else if (kind_of(frame) == Kind::shown) {
            shown_ = fields.take<std::uint64_t>();
            store();  // what the last connection carried may be lost
        } else if (kind_of(frame) == Kind::interrupt) {
            static_cast<void>(fields.take<std::uint64_t>());
            const auto value = fields.take<std::uint32_t>();
            EXPECT_TRUE(shown_ == 0 || value <= word(kWriters - 1))
                << "an interrupt came before what was written before it";
            ++told;
        }
    }
    std::uint32_t word(unsigned writer) {
        std::uint32_t value = 0;
        std::memcpy(&value, view_->memory() + kPlaces[writer], sizeof value);
        return value;
    }
    void look() {
        for (unsigned w = 0; w < kWriters; ++w) {
            EXPECT_GE(word(w), seen_[w]) << "an older value came after a later one";
            seen_[w] = word(w);
        }
    }

    rmem_node* const node_;
    Twins& twins_;
    const unsigned writer_;
    rmem::Random random_;
    rmem::test::CutLine calls_, news_;
    std::uint64_t cuts_ = 0;
    std::optional<Session> session_;
    std::uint64_t number_ = 0, own_number_ = 0;  ///< connections of the session, of the view

    std::optional<View> view_;
    std::optional<FrameQueue> answers_, told_;
    rmem::ByteQueue out_;
    std::vector<std::uint32_t> asked_;  ///< what the answers have to be
    std::array<std::uint32_t, kWriters> seen_{};
    std::uint64_t writes_ = 0, shown_ = 0;
    std::uint32_t value_ = 0;
};

TEST(RemoteHunt, a_hunt_of_some_dozens_of_seeds_finds_nothing) {
    rmem::check_from_now_on();
    std::uint64_t cuts = 0, told = 0, answered = 0;
    for (std::uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        const rmem::test::RingName name;
        const rmem::test::Options first(name.get(), rmem::LinkKind::direct, 0);
        const rmem::test::Options second(name.get(), rmem::LinkKind::direct, 1);
        const rmem::test::OpenNode served(first), other(second);
        ASSERT_EQ(rmem_accept_interrupts(served, kNumbers), RMEM_OK);
        Twins twins(served);
        std::list<Client> clients;
        for (unsigned i = 0; i + 1 < kWriters; ++i)
            clients.emplace_back(served, twins, i, seed + i);
        rmem::Random random(seed);
        std::int64_t now_ns = 1'000'000'000;
        std::uint32_t value = 0;
        const auto run = [&](std::int64_t most_ns) {
            now_ns += random.between(0, most_ns);
            rmem_interrupt interrupt;
            while (rmem_next_interrupt(served, &interrupt, 0) == RMEM_OK)
                for (Client& client : clients) client.interrupt(interrupt);
            for (Client& client : clients) client.run(now_ns);
        };
        for (unsigned step = 0; step < 1500 && !HasFailure(); ++step) {
            Client& client = random.one_in(2) ? clients.front() : clients.back();
            switch (random.below(6)) {
                case 0: client.store(); break;
                case 1: client.call(); break;
                case 2: client.ask(); break;
                case 3: ASSERT_EQ(rmem_write_word(other, kPlaces[kWriters - 1], ++value), 0); break;
                case 4: ASSERT_EQ(rmem_send_interrupt(other, 0, 0, value), 0); break;
                default: run(300'000);
            }
            if (random.one_in(300)) client.cut(now_ns);
        }
        const auto is_settled = [&] {
            return clients.front().is_settled() && clients.back().is_settled();
        };
        for (unsigned i = 0; i < 2000 && !is_settled(); ++i) run(300'000);
        EXPECT_TRUE(is_settled()) << "a view differs from the bank";
        for (const Client& client : clients) {
            cuts += client.cuts();
            told += client.told;
            answered += client.answered;
        }
    }
    EXPECT_GT(cuts, 300U);
    EXPECT_GT(told, 1000U);
    EXPECT_GT(answered, 1000U);
}

}  // namespace
}  // namespace simulator
