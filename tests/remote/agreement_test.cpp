// SPDX-License-Identifier: Apache-2.0

/// The three rules of docs/design/serve.md: a client's view and the node's bank are the same once
/// all that is on its way has come, in whatever order programs, calls, news and looks take turns.

#include "remote/session.hpp"
#include "remote/view.hpp"
#include "tests/support/c_nodes.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <list>
#include <random>

namespace remote {
namespace {

constexpr std::size_t kBytes = 2 * kPageBytes;
constexpr unsigned kWords = 6;   // that are written
constexpr unsigned kValues = 3;  // few, so that what was there before comes back

/// A node, a session of it, the client's view, and the frames between them. The other writer is of
/// the same node: to the session it is as another node's.
class World {
public:
    World(rmem_node* node, Twins& twins) : node_(node), session_(node, 1, twins) {
        for (unsigned i = 0; i < kWords; ++i) rmem_write_word(node_, offset_of(i), 0);
        view_.map(0, kPageBytes);
        post(Kind::map, std::uint64_t{0}, std::uint64_t{kPageBytes});
    }

    void act(unsigned what, unsigned which, std::uint32_t value) {
        switch (what) {
            case 0: return store(which, value);
            case 1: return collect();
            case 2: return call(which, value);
            case 3: return deliver_call();
            case 4: rmem_write_word(node_, offset_of(which), value); return;
            case 5: return look();
            case 6: {  // a byte of a word whose others the program stores
                const auto byte = static_cast<std::uint8_t>(value);
                rmem_write(node_, offset_of(which) + value % kWordBytes, &byte, 1);
                return;
            }
            case 7: {
                view_.memory()[offset_of(which) + 2] = static_cast<std::byte>(value);
                return;
            }
            default: return deliver_news();
        }
    }
    void settle() {
        collect();
        while (!calls_.empty()) deliver_call();
        look();
        while (!news_.empty()) deliver_news();
    }
    void expect_agreement(unsigned round) {
        std::array<std::uint32_t, kWords> bank{}, view{};
        rmem_read(node_, 0, bank.data(), sizeof bank);
        std::memcpy(view.data(), view_.memory(), sizeof view);
        EXPECT_EQ(view, bank) << "round " << round;
        settle();
        EXPECT_TRUE(calls_.empty()) << "what came was taken for a store, in round " << round;
    }

private:
    struct Change {
        std::uint64_t known, offset;
        std::vector<std::byte> words;
    };

    static std::uint64_t offset_of(unsigned word) { return word * kWordBytes; }

    template <class... Fields>
    void post(Kind kind, const Fields&... fields) {
        FrameWriter frame(calls_.emplace_back(), kind);
        (frame.put(fields), ...);
    }
    void store(unsigned word, std::uint32_t value) {
        std::memcpy(view_.memory() + offset_of(word), &value, sizeof value);
    }
    void collect() {
        view_.collect(
            0, kBytes,
            [this](std::uint64_t offset, std::span<const std::byte> words, rmem::WordPart part) {
                if (part == rmem::kWholeWord) {
                    post(Kind::write, offset, words);
                } else {
                    post(Kind::write_part, offset, words, std::uint32_t{part});
                }
                return ++writes_;
            });
    }
    /// Of the word, of its first byte, or of its last.
    void call(unsigned word, std::uint32_t value) {
        collect();
        const std::size_t first = value % 3 == 2 ? kWordBytes - 1 : 0;
        const std::size_t bytes = value % 3 == 0 ? kWordBytes : 1;
        const auto data = std::as_bytes(std::span(&value, 1)).subspan(first, bytes);
        post(Kind::write, offset_of(word) + first, data);
        view_.wrote(offset_of(word) + first, data, ++writes_);
    }
    void deliver_call() {
        if (calls_.empty()) return;
        session_.receive(calls_.front());
        calls_.pop_front();
        session_.run(0);
    }
    void look() {
        session_.look(SIZE_MAX);
        FrameQueue frames(kMaxBodyBytes);
        frames.add(session_.news().left());
        session_.news().sent(session_.news().left().size());
        for (; const auto frame = frames.front(); frames.pop()) {
            if (kind_of(*frame) != Kind::change) continue;
            FieldReader fields(frame->body);
            Change& change = news_.emplace_back();
            change.known = fields.take<std::uint64_t>();
            change.offset = fields.take<std::uint64_t>();
            const auto words = fields.rest();
            change.words.assign(words.begin(), words.end());
        }
    }
    void deliver_news() {
        if (news_.empty()) return;
        view_.changed(news_.front().offset, news_.front().words, news_.front().known);
        news_.pop_front();
    }

    rmem_node* const node_;
    Session session_;
    View view_{kBytes};
    std::uint64_t writes_ = 0;
    std::deque<std::vector<std::byte>> calls_;
    std::deque<Change> news_;
};

TEST(Agreement, comes_when_all_has_come_whatever_overtakes_what) {
    constexpr unsigned kRounds = 3000;
    constexpr unsigned kSteps = 60;
    const rmem::test::RingName name;
    rmem::test::Options options(name.get(), rmem::LinkKind::direct, 0);
    options->memory_bytes = kBytes;
    const rmem::test::OpenNode node(options);
    std::minstd_rand random(5565);
    for (unsigned round = 0; round < kRounds && !HasFailure(); ++round) {
        // One client, or two that have mapped the same page.
        const unsigned clients = 1 + round % 2;
        Twins twins(node);
        std::list<World> worlds;
        for (unsigned i = 0; i < clients; ++i) worlds.emplace_back(node, twins);
        for (unsigned step = 0; step < kSteps * clients; ++step) {
            World& world = random() % clients == 0 ? worlds.front() : worlds.back();
            const auto what = static_cast<unsigned>(random() % 9);
            const auto which = static_cast<unsigned>(random() % kWords);
            world.act(what, which, static_cast<std::uint32_t>(random() % kValues * 0x01010101));
        }
        for (World& world : worlds) world.settle();
        for (World& world : worlds) world.settle();  // what the others have written
        for (World& world : worlds) world.expect_agreement(round);
    }
}

}  // namespace
}  // namespace remote
