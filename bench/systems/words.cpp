// SPDX-License-Identifier: Apache-2.0
//
// A word of the memory, written at a node and awaited at another; by variant:
//   (none)    between the nodes of two ranks. On link ring it tells how late writes were, visible
//             minus due by the wire model: percentiles among writes that fell due while the engine
//             ran without a gap of more than 1.5 us, the share of the others, and `floor_ns`, the
//             model's shortest propagation, which no way may be below.
//   bridged   `relay`: from a node of one ring to a node of another, both rank 0's, over the
//             `rmem bridge` that the runner has started; it and this process need a processor each
#include "bench/harness/harness.hpp"

#include "billboard/bbp.h"
#include "rmem/base/environment_variable.hpp"
#include "rmem/node.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/ring.hpp"

namespace {

using namespace bench;
using rmem::Node;

/// Linked, so that rings made here have a place for messages, as the bridge's have.
[[gnu::used]] const auto kBillboard = &bbp_init;

constexpr std::int64_t kPatienceNs = 60'000'000'000;

Node join(const std::string& ring, const std::string& link, int node, bool awaits_others) {
    const rmem::GivenSettings given({{"RMEM_RING", ring},
                                     {"RMEM_LINK", link},
                                     {"RMEM_NODE", std::to_string(node)},
                                     {"RMEM_NODES", "2"},
                                     {"RMEM_SIZE", "65536"}});
    return Node::open(awaits_others);
}

void write(Node& node, std::size_t offset, std::uint32_t value) {
    while (node.write_word(offset, value) != rmem::WriteResult::ok) node.poll();
}

class WordChannel {
public:
    WordChannel(const std::string& ring, int rank)
        : own_(4 * std::size_t(rank)), node_(join(ring, setting("RMEM_LINK", ""), rank, true)) {}

    void send(const void* data, std::size_t size) {
        std::memcpy(&number_, data, std::min(size, sizeof number_));
        write(node_, own_, ++sent_);
    }
    void receive(void* data, std::size_t size) {
        const auto found = node_.wait_change(4 - own_, received_, rmem::Deadline::in(kPatienceNs));
        require(found == ++received_, "a word that is not the next");
        std::memcpy(data, &number_, std::min(size, sizeof number_));  // what was echoed
    }
    Numbers news() {
        const rmem::TimingProfile& wire = node_.config().timing;
        if (node_.config().link != rmem::LinkKind::ring || wire.instant != 0) return {};
        const auto floor_ps = wire.insertion_ps + packet_ps(wire, 1) + wire.cable_ps;
        Numbers told = {{"floor_ns", double(floor_ps) / 1000}};
        for (unsigned id = 0; id < 2; ++id) {
            const rmem::NodeSlot& slot = node_.ring().node(id);
            const auto prefix = "node" + std::to_string(id) + "_late_";
            for (const auto& [name, share] : {std::pair("p50_ns", .5), {"p99_ns", .99}})
                told.emplace_back(prefix + name, double(slot.lateness.quantile(share)));
            told.emplace_back(prefix + "by_host_percent",
                              100 * double(slot.link.get(rmem::LinkCounter::late_by_host)) /
                                  double(slot.link.get(rmem::LinkCounter::writes_applied)));
        }
        return told;
    }

private:
    std::size_t own_;
    Node node_;
    std::uint32_t sent_ = 0, received_ = 0;
    std::uint64_t number_ = 0;
};

/// By one thread: what the writer's own node has to do is done while the reader waits.
class BridgedChannel {
public:
    BridgedChannel(const std::string& ring, const std::string& from, const std::string& to)
        : writer_(join(ring + "-a", from, 0, false)), reader_(join(ring + "-b", to, 0, false)) {
        call(0);
        require(reader_.wait_change(0, 0, rmem::Deadline::in(kPatienceNs)) == sent_,
                "nothing has come over the bridge");
    }
    void call(std::size_t) { write(writer_, 0, ++sent_); }
    void settle(std::size_t) {
        while (reader_.load(0) != sent_) {
        }
    }
    static void serve() {}
    static void finish() {}

private:
    Node writer_, reader_;
    std::uint32_t sent_ = 0;
};

}  // namespace

int bench::measure(const Setup& setup) {
    const std::string ring = setting("BENCH_RING", "bench-" + std::to_string(getpid()));
    if (setup.variant != "bridged")
        return measure_ranks(
            setup, [&](int rank, Meeting&) { return WordChannel(ring, rank); },
            Pinned::when_joined);
    const std::string from = setting("BENCH_FROM", "ring"), to = setting("BENCH_TO", "ring");
    return measure_ranks(setup, [&](int, Meeting&) { return BridgedChannel(ring, from, to); });
}
