// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/snapshot.hpp"
#include "rmem/base/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

namespace rmem::udp {
namespace {

constexpr NodeIncarnation kJoiner{7, 77}, kDonor{3, 33};

/// A bank that applies the streams of several origins, each as far as it likes.
class Replica {
public:
    explicit Replica(std::size_t words) : bank(words) {}

    std::vector<std::uint32_t> bank;
    std::array<std::uint64_t, kMaxNodes> applied{};

    std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bank)); }
};

struct Write {
    Place place;
    std::uint32_t value;
};

constexpr std::size_t kSharedWords = 8;

/// Streams of origins that each own every n-th run of 16 words, and where they are at most four one
/// byte of each of the last kSharedWords.
class Streams {
public:
    Streams(unsigned origins, std::size_t words, std::uint64_t seed)
        : random(seed), batches(origins), words_(words) {}

    void extend(unsigned origin) {
        if (batches.size() <= kWordBytes && random.below(4) == 0) {
            const std::uint8_t own = Place::flags_of(part_of_word(origin, 1));
            const std::uint64_t shared = words_ - kSharedWords + random.below(kSharedWords);
            batches[origin].push_back({{shared, 1, own}, ++values_ * 0x01010101U});
            return;
        }
        const std::size_t runs = (words_ - kSharedWords) / 16 / batches.size();
        const std::uint64_t run = random.below(runs) * batches.size() + origin;
        const auto length = static_cast<std::uint16_t>(random.below(16) + 1);
        batches[origin].push_back({{run * 16, length, 0}, ++values_});
    }
    /// The replica applies the next batch of the origin, if there is one.
    bool apply_next(Replica& replica, unsigned origin, SnapshotTaker* taker = nullptr) {
        const std::uint64_t next = replica.applied[origin] + 1;
        if (next > batches[origin].size()) return false;
        const Write& write = batches[origin][next - 1];
        for (std::size_t i = 0; i < write.place.words; ++i) {
            std::uint32_t& word = replica.bank[write.place.index + i];
            word = with_part(word, write.value, write.place.part());
        }
        replica.applied[origin] = next;
        if (taker != nullptr) taker->note_write(origin, next, write.place);
        return true;
    }

    Random random;
    std::vector<std::vector<Write>> batches;

private:
    std::size_t words_;
    std::uint32_t values_ = 0;
};

/// A donor and a joiner, and what is on its way between them.
class Joining {
public:
    Joining(Replica& donor, Replica& joiner, SnapshotTaker& taker, unsigned origins)
        : donor_(donor),
          joiner_(joiner),
          taker_(taker),
          origins_(origins),
          buffer_(kDefaultPayload),
          writer_(buffer_) {}

    /// As a stranger to this protocol may.
    void request(std::initializer_list<Place> places, unsigned times) {
        writer_.begin({});
        ASSERT_TRUE(writer_.begin_snapshot_request({kDonor, 1}));
        for (; times != 0; --times) {
            for (const Place& place : places) ASSERT_TRUE(writer_.add_part(place));
        }
        to_donor.push_back(take_datagram());
    }
    bool request(std::int64_t now) {
        writer_.begin({});
        if (!taker_.request(writer_, kDonor, now)) return false;
        to_donor.push_back(take_datagram());
        return true;
    }
    void answer_next() {
        const auto bytes = to_donor.front();
        to_donor.erase(to_donor.begin());
        DonorView view;
        for (unsigned o = 0; o < origins_; ++o) view.origins.insert(o);
        view.positions = donor_.applied;
        view.bank = donor_.bytes();
        if (donor_is_blank) view.is_blank = [](const Place&) { return true; };
        view.given = given;
        each_section(bytes, [&](const Section& section) {
            ASSERT_EQ(section.type(), SectionType::snapshot_request);
            answer(
                kJoiner, SnapshotRequest(section), view,
                [this]() -> DatagramWriter& {
                    writer_.begin({});
                    return writer_;
                },
                [this] { to_joiner.push_back(take_datagram()); });
        });
    }
    void take(std::size_t which) {
        const auto bytes = to_joiner[which];
        to_joiner.erase(to_joiner.begin() + static_cast<std::ptrdiff_t>(which));
        each_section(bytes, [&](const Section& section) {
            if (section.type() == SectionType::vector) {
                taker_.on_vector(Vector(section), 0, applied());
            } else {
                ASSERT_EQ(section.type(), SectionType::chunk);
                const auto store = [this](std::uint64_t index, std::uint32_t value, WordPart part) {
                    std::uint32_t& word = joiner_.bank.at(index);
                    word = with_part(word, value, part);
                    ++stores;
                };
                taker_.on_chunk(Chunk(section), store, [this](const Place&) { return is_blank; });
            }
        });
    }
    void take_all() {
        while (!to_joiner.empty()) take(0);
    }
    SnapshotTaker::Applied applied() const {
        return [this](unsigned origin) { return joiner_.applied[origin]; };
    }

    template <class Visit>
    static void each_section(const std::vector<std::byte>& bytes, Visit visit) {
        Datagram datagram;
        ASSERT_EQ(read_datagram(bytes, 0, kDefaultPayload, datagram), Refusal::none);
        Sections sections;
        ASSERT_EQ(read_sections(datagram, sections), Refusal::none);
        for (const Section& section : sections) visit(section);
    }

    std::vector<std::vector<std::byte>> to_donor, to_joiner;
    bool is_blank = false;  ///< the joiner's bank, where nothing was stored
    bool donor_is_blank = false;
    std::vector<bool>* given = nullptr;
    unsigned stores = 0;

private:
    std::vector<std::byte> take_datagram() {
        const auto datagram = writer_.finish();
        return {datagram.begin(), datagram.end()};
    }
    Replica& donor_;
    Replica& joiner_;
    SnapshotTaker& taker_;
    unsigned origins_;
    std::vector<std::byte> buffer_;
    DatagramWriter writer_;
};

TEST(Snapshot, gives_a_joiner_the_bank_of_its_streams_positions_whatever_goes_on) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        Random dice(seed * 31);
        const auto origins = static_cast<unsigned>(dice.below(4)) + 1;
        const std::size_t words =
            (dice.below(40) + 2) * 16 * origins + dice.below(300) + kSharedWords;
        Streams streams(origins, words, seed);
        Replica donor(words), joiner(words);
        for (int i = 0; i < 200; ++i) streams.extend(static_cast<unsigned>(dice.below(origins)));
        SnapshotTaker taker(words);
        // Admitted here; the donor may not have come that far yet.
        for (unsigned o = 0; o < origins; ++o) {
            const std::uint64_t some = dice.below(streams.batches[o].size() + 1);
            while (donor.applied[o] < some) streams.apply_next(donor, o);
            joiner.applied[o] = some + dice.below(streams.batches[o].size() - some + 1);
            taker.note_admission(o, joiner.applied[o] + 1);
        }
        Joining joining(donor, joiner, taker, origins);
        std::int64_t now = 0;
        for (unsigned steps = 0; !taker.is_complete(joining.applied()); ++steps) {
            ASSERT_LT(steps, 100'000U) << "seed " << seed;
            const auto o = static_cast<unsigned>(dice.below(origins));
            switch (dice.below(7)) {
                case 0:
                    if (steps < 3000) streams.extend(o);
                    break;
                case 1: streams.apply_next(donor, o); break;
                case 2: streams.apply_next(joiner, o, &taker); break;
                case 3:
                    if (taker.request_due_ns() <= now) joining.request(now);
                    break;
                case 4:
                    if (!joining.to_donor.empty()) joining.answer_next();
                    break;
                case 5:
                    if (!joining.to_joiner.empty())
                        joining.take(dice.below(joining.to_joiner.size()));
                    break;
                default:
                    now += 100'000;
                    if (!joining.to_joiner.empty() && dice.below(10) == 0) {
                        joining.to_joiner.erase(joining.to_joiner.begin());  // lost
                    }
            }
        }
        Replica reference(words);
        for (unsigned o = 0; o < origins; ++o) {
            while (reference.applied[o] < joiner.applied[o]) streams.apply_next(reference, o);
        }
        ASSERT_EQ(joiner.bank, reference.bank) << "seed " << seed;
    }
}

/// A joiner of one donor, both with a bank of this many words; all of the donor's have this value.
struct Pair {
    explicit Pair(std::size_t words, std::uint32_t value = 0) : donor(words), joiner(words) {
        std::fill(donor.bank.begin(), donor.bank.end(), value);
    }
    Replica donor, joiner;
    SnapshotTaker taker{donor.bank.size()};
    Joining joining{donor, joiner, taker, 1};
};

/// Requests and answers until all is here, none of them lost. Datagrams that answered.
unsigned finish(Joining& joining, const SnapshotTaker& taker) {
    unsigned answers = 0;
    while (!taker.is_complete(joining.applied())) {
        if (!joining.request(0)) break;
        joining.answer_next();
        answers += static_cast<unsigned>(joining.to_joiner.size());
        joining.take_all();
    }
    EXPECT_TRUE(taker.is_complete(joining.applied()));
    return answers;
}

TEST(Snapshot, of_a_bank_of_zeros_takes_few_datagrams_and_no_stores) {
    Pair pair(std::size_t{kMaxPartsARequest} * kPartWords);
    Joining& joining = pair.joining;
    joining.is_blank = joining.donor_is_blank = true;
    EXPECT_LE(finish(joining, pair.taker), 6U);
    EXPECT_EQ(joining.stores, 0U);
}

TEST(Snapshot, zeros_are_stored_where_a_stream_has_written) {
    Pair pair(8 * kPartWords);
    auto& [donor, joiner, taker, joining] = pair;
    joining.is_blank = true;
    taker.note_write(0, 1, {5 * kPartWords + 7, 1, 0});
    joiner.bank[5 * kPartWords + 7] = 9;
    donor.applied[0] = joiner.applied[0] = 2;  // the donor's is later
    finish(joining, taker);
    EXPECT_EQ(joiner.bank[5 * kPartWords + 7], 0U);
    EXPECT_EQ(joining.stores, kPartWords);
}

TEST(Snapshot, an_answer_has_few_parts_with_words_and_the_others_are_requested_again) {
    const std::size_t zeros = std::size_t{256} * kPartWords, words = std::size_t{100} * kPartWords;
    Pair pair(zeros + words);
    auto& [donor, joiner, taker, joining] = pair;
    std::fill(donor.bank.begin() + static_cast<std::ptrdiff_t>(zeros), donor.bank.end(), 5);
    std::int64_t now = 0;
    std::size_t most = 0;
    for (unsigned tries = 0; !taker.is_complete(joining.applied()); now += 100'000'000) {
        ASSERT_LT(++tries, 100U);
        if (!joining.request(now)) continue;
        joining.answer_next();
        most = std::max(most, joining.to_joiner.size());
        joining.take_all();
    }
    EXPECT_GE(most, kPartsARequest);
    EXPECT_LE(most, kPartsARequest + 2U) << "one each, zeros and the vector";
    EXPECT_EQ(joiner.bank, donor.bank);
}

TEST(Snapshot, a_donor_looks_at_no_more_than_a_request_has_that_a_node_makes) {
    Pair pair(100'000);
    Joining& joining = pair.joining;
    joining.request({{0, 65'535, 0}, {7, 60'000, 0}}, 50);
    joining.answer_next();
    std::size_t words = 0;
    for (const auto& bytes : joining.to_joiner) {
        Joining::each_section(bytes, [&](const Section& section) {
            if (section.type() == SectionType::chunk) words += Chunk(section).place().words;
        });
    }
    EXPECT_GT(words, 65'535U);
    EXPECT_LE(words, std::size_t{kMaxLooks} * kPartWords);
}

TEST(Snapshot, is_requested_alone_and_less_often_while_nothing_comes) {
    Pair pair(100 * kPartWords);
    auto& [donor, joiner, taker, joining] = pair;
    std::int64_t now = 0;
    while (joining.request(now)) {
    }
    EXPECT_EQ(joining.to_donor.size(), 1U) << "until it is known how much comes";
    std::int64_t before = 0;
    for (int i = 0; i < 20; ++i) {
        const std::int64_t waited = taker.request_due_ns() - now;
        EXPECT_GE(waited, std::min(before, kMaxAgainNs));
        EXPECT_LE(waited, kMaxAgainNs);
        before = waited;
        now = taker.request_due_ns();
        EXPECT_TRUE(joining.request(now));
        EXPECT_FALSE(joining.request(now)) << "one at a time";
    }
    EXPECT_EQ(before, kMaxAgainNs);
    joining.to_donor.erase(joining.to_donor.begin(), joining.to_donor.end() - 1);
    joining.answer_next();
    joining.take_all();
    unsigned requests = 0;
    while (joining.request(now)) ++requests;
    EXPECT_GT(requests, 1U) << "several again";
    EXPECT_LE(requests, kMaxRequests);
}

TEST(Snapshot, takes_what_another_joiner_has_asked_for_and_what_comes_late) {
    Replica donor(4 * kPartWords), joiner(donor.bank.size());
    for (auto& word : donor.bank) word = 5;
    SnapshotTaker taker(donor.bank.size(), 1, 0, 2), other(donor.bank.size(), 1, 1, 2);
    Joining joining(donor, joiner, taker, 1);
    Joining others(donor, joiner, other, 1);
    ASSERT_TRUE(others.request(0));
    others.answer_next();
    joining.to_joiner = others.to_joiner;
    joining.take_all();
    EXPECT_EQ(taker.parts_here(), 1U);
    EXPECT_EQ(joiner.bank[2 * kPartWords], 5U) << "the other one begins with its share";

    ASSERT_TRUE(joining.request(0));
    ASSERT_TRUE(joining.request(100'000'000)) << "the first one counts as lost";
    joining.answer_next();
    joining.take_all();
    EXPECT_EQ(taker.parts_here(), 2U);
    joining.answer_next();
    joining.take_all();
    finish(joining, taker);
    EXPECT_EQ(joiner.bank, donor.bank);
}

TEST(Snapshot, is_not_given_again_to_those_that_have_just_heard_it) {
    Pair pair(4 * kPartWords, 5);
    Joining& joining = pair.joining;
    std::vector<bool> given(4);
    joining.given = &given;
    for (const std::size_t datagrams : {1U, 0U}) {
        joining.request({{kPartWords, kPartWords, 0}}, 1);
        joining.answer_next();
        EXPECT_EQ(joining.to_joiner.size(), datagrams);
        joining.to_joiner.clear();
    }
}

}  // namespace
}  // namespace rmem::udp
