// SPDX-License-Identifier: Apache-2.0
// Directed point graphs: what a description may say, and that it sets endpoints and edges up, also
// while running.
#include "ports/dp/graph.h"

#include "ports/dp/graph.hpp"
#include "tests/ports/dp/points.hpp"
#include "tests/support/broken.hpp"

namespace ports::dp {

struct PlantedBug {
    static void add_edge_without_points(Graph& graph) { graph.edges_.insert({{1, 1}, {2, 2}}); }
};

}  // namespace ports::dp

namespace rmem::test {
namespace {

class Graphs : public Conformance {};
RMEM_ON_ALL_RINGS(Graphs);

constexpr const char* kThree = R"(digraph three {
    a1 [process = 0, nid = 1, dpid = 1]; a2 [process = 0, nid = 1, dpid = 2];
    b5 [process = 1, nid = 1, dpid = 5];
    c1 [process = 2, nid = 2, dpid = 1, shape = box];
    a1 -> b5; a1 -> c1; b5 -> a2;
})";

void say(int fd, std::uint64_t seed, Place place = Place::here()) {
    auto bytes = pattern(8, seed);
    check_equal(dp_write(fd, bytes.data(), 8), 8, "dp_write", place);
}
void hear(int fd, std::uint64_t seed, Place place = Place::here()) {
    char* at = nullptr;
    check_equal(dp_read(fd, &at), 8, "dp_read", place);
    check_bytes(at, 8, seed, place);
    dp_fsync(fd, 1);
}

TEST_P(Graphs, a_described_graph_sets_endpoints_and_edges_up_and_can_be_changed) {
    run(3, [](Rank& me) {
        dp_graph_t* graph = dp_graph_parse(kThree);
        check(graph != nullptr, dp_last_error());
        check_equal(dp_graph_points(graph), 4, "points");
        check_equal(dp_graph_edges(graph), 3, "edges");
        check_equal(dp_graph_edges_to(graph, 1, 2), 1, "edges to <1,2>");
        all_are_open(me);
        if (me.rank == 0) {
            say(dp_graph_fd(graph, 1, 1), 1);  // a broadcast: two edges
            hear(dp_graph_fd(graph, 2, 1), 2);
        } else if (me.rank == 1) {
            hear(dp_graph_fd(graph, 5, 1), 1);
            say(dp_graph_fd(graph, 5, 1), 2);
        } else {
            hear(dp_graph_fd(graph, 1, 2), 1);
            CHECK_ERRNO(dp_graph_fd(graph, 1, 1), EREMOTE);
        }
        CHECK_ERRNO(dp_graph_fd(graph, 9, 9), ENOENT);
        check_equal(dp_graph_remove_edge(graph, 1, 1, 5, 1), 0, "remove_edge");
        check_equal(dp_graph_add_point(graph, 7, 2, 2), 0, "add_point");
        check_equal(dp_graph_add_edge(graph, 5, 1, 7, 2), 0, "add_edge");
        check_equal(dp_graph_remove_edge(graph, 5, 1, 2, 1), 0, "remove_edge");
        me.raise(0);
        me.await_word(0, 3);
        if (me.rank == 0) say(dp_graph_fd(graph, 1, 1), 3);
        if (me.rank == 1) say(dp_graph_fd(graph, 5, 1), 4);
        if (me.rank == 2) {
            hear(dp_graph_fd(graph, 1, 2), 3);
            hear(dp_graph_fd(graph, 7, 2), 4);
        }
        check_equal(dp_graph_remove_point(graph, 1, 2), 0, "remove_point");
        check_equal(dp_graph_edges(graph), 1, "edges that are left");
        if (me.rank == 0) {
            char byte = 0;
            CHECK_ERRNO(dp_write(dp_graph_fd(graph, 1, 1), &byte, 1), ENOTCONN);
        }
        dp_graph_free(graph);
    });
}

TEST_P(Graphs, what_cannot_be_is_refused_with_a_sentence) {
    run(2, [](Rank&) {
        const auto refused = [](const std::string& body, int error, const char* sentence) {
            errno = 0;
            check(dp_graph_parse(("digraph g { " + body + " }").c_str()) == nullptr, body);
            check_equal(errno, error, body);
            check(std::string(dp_last_error()).find(sentence) != std::string::npos,
                  dp_last_error());
        };
        refused("a [process=0, nid=1, dpid=x];", EINVAL, "dpid = 'x'");
        refused("a [process=0, nid=1];", EINVAL, "dpid = ''");
        refused("a [process=0, nid=1, dpid=65536];", EINVAL, "0 to 65535");
        refused("a [process=0,nid=1,dpid=1]; b [process=1,nid=1,dpid=1];", EEXIST, "occurs twice");
        refused("a [process=0,nid=1,dpid=1]; b [process=0,nid=2,dpid=2];", EINVAL,
                "on another node");
        refused("a [process=0,nid=1,dpid=1]; b [process=0,nid=1,dpid=2]; a -> b;", EINVAL,
                "within process 0");
        refused("a [process=2,nid=1,dpid=1];", EINVAL, "3 processes, the ring 2 ranks");
        refused("a [", EINVAL, "no digraph");
        check(dp_graph_parse("graph g { a -- b }") == nullptr, "an undirected graph");
        check(dp_graph_read("/nowhere/graph.dot") == nullptr, "no file");
        check_equal(errno, ENOENT, "errno");
        check(dp_graph_parse(nullptr) == nullptr && errno == EFAULT, "no text");
    });
}

TEST(GraphDeathTest, checks_that_edges_join_points) {
    ports::dp::Graph graph;
    graph.add_point({5, 5}, 0);
    EXPECT_BROKEN(ports::dp::PlantedBug::add_edge_without_points(graph);
                  graph.remove_point({5, 5}));
}

}  // namespace
}  // namespace rmem::test
