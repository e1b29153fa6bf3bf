// SPDX-License-Identifier: Apache-2.0
#include "ports/dp/graph.h"

#include "ports/dp/graph.hpp"
#include "ports/dp/last_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <sstream>
#include <type_traits>

using ports::dp::fail;
using ports::dp::Graph;
using ports::dp::GraphError;
using ports::dp::PointName;

/// A graph, and the descriptors of this process's points.
struct dp_graph {
    Graph graph;
    std::map<PointName, int> open;
    /// Keeps the process on the ring, whatever endpoints there are: rank and ranks stay known.
    int home = -1;
    int process = -1;  ///< this one

    ~dp_graph() {
        for (const auto& [name, fd] : open) dp_close(fd);
        if (home >= 0) dp_close(home);
    }
    bool is_mine(PointName name) const { return graph.process_of(name) == process; }
    void open_point(PointName name) {
        const int fd = dp_open(name.dpid);
        if (fd < 0) throw GraphError(errno, dp_last_error());
        open.emplace(name, fd);
    }
    void set_edge(const Graph::Edge& edge) {
        if (!is_mine(edge.first)) return;
        if (dp_target_add(open.at(edge.first), graph.process_of(edge.second), edge.second.dpid) !=
            0)
            throw GraphError(errno, fmt::format("an edge of endpoint {}: {}", edge.first.dpid,
                                                std::strerror(errno)));
    }
    void unset_edge(const Graph::Edge& edge) {
        if (is_mine(edge.first))
            dp_target_remove(open.at(edge.first), graph.process_of(edge.second), edge.second.dpid);
    }
};

namespace {

template <class Body>
auto guarded(Body&& body) noexcept -> decltype(body()) {
    const auto failed = [](int error, const std::string& sentence) {
        fail(error, sentence);
        if constexpr (std::is_pointer_v<decltype(body())>) {
            return decltype(body()){nullptr};
        } else {
            return decltype(body()){-1};
        }
    };
    try {
        return body();
    } catch (const GraphError& error) {
        return failed(error.error(), error.what());
    } catch (const std::bad_alloc&) {
        return failed(ENOMEM, "no memory for a graph");
    } catch (const std::exception& error) {
        return failed(EINVAL, error.what());
    }
}

/// A DPID that no point of this process has.
int spare_dpid(const Graph& graph) {
    const auto is_taken = [&](int dpid) {
        return std::any_of(graph.points().begin(), graph.points().end(),
                           [&](const auto& point) { return point.first.dpid == dpid; });
    };
    int dpid = DP_MAX_DPID;
    while (is_taken(dpid)) --dpid;
    return dpid;
}

dp_graph_t* set_up(const std::string& text) {
    auto made = std::make_unique<dp_graph>();
    made->graph = Graph::parse(text);
    made->home = dp_open(spare_dpid(made->graph));
    if (made->home < 0) throw GraphError(errno, dp_last_error());
    made->process = dp_nid();
    if (made->graph.processes() > dp_nids()) {
        throw GraphError(EINVAL, fmt::format("the graph has {} processes, the ring {} ranks; start "
                                             "more ranks",
                                             made->graph.processes(), dp_nids()));
    }
    for (const auto& [name, process] : made->graph.points()) {
        if (process == made->process) made->open_point(name);
    }
    for (const Graph::Edge& edge : made->graph.edges()) made->set_edge(edge);
    return made.release();
}

}  // namespace

extern "C" {

dp_graph_t* dp_graph_parse(const char* text) {
    return guarded([&]() -> dp_graph_t* {
        if (text == nullptr) throw GraphError(EFAULT, "the graph's text is a null pointer");
        return set_up(text);
    });
}

dp_graph_t* dp_graph_read(const char* path) {
    return guarded([&]() -> dp_graph_t* {
        if (path == nullptr) throw GraphError(EFAULT, "the graph's path is a null pointer");
        std::ifstream file(path);
        if (!file) {
            throw GraphError(errno, fmt::format("the graph '{}' cannot be read: {}", path,
                                                std::strerror(errno)));
        }
        std::ostringstream text;
        text << file.rdbuf();
        return set_up(text.str());
    });
}

void dp_graph_free(dp_graph_t* graph) {
    delete graph;
}

int dp_graph_fd(const dp_graph_t* graph, int dpid, int nid) {
    return guarded([&] {
        if (const auto it = graph->open.find({dpid, nid}); it != graph->open.end())
            return it->second;
        throw GraphError(EREMOTE,
                         fmt::format("endpoint <{},{}> is process {}'s, and this is {}", dpid, nid,
                                     graph->graph.process_of({dpid, nid}), graph->process));
    });
}

int dp_graph_add_point(dp_graph_t* graph, int dpid, int nid, int process) {
    return guarded([&] {
        if (dpid < 0 || dpid > DP_MAX_DPID || nid < 0 || process < 0 || process >= dp_nids()) {
            throw GraphError(EINVAL, fmt::format("there is no process {} that could have endpoint "
                                                 "<{},{}>",
                                                 process, dpid, nid));
        }
        graph->graph.add_point({dpid, nid}, process);
        if (process == graph->process) graph->open_point({dpid, nid});
        return 0;
    });
}

int dp_graph_remove_point(dp_graph_t* graph, int dpid, int nid) {
    return guarded([&] {
        const PointName name{dpid, nid};
        const auto edges = graph->graph.edges();
        for (const Graph::Edge& edge : edges) {
            if (edge.second == name) graph->unset_edge(edge);
        }
        if (graph->is_mine(name)) {
            dp_close(graph->open.at(name));
            graph->open.erase(name);
        }
        graph->graph.remove_point(name);
        return 0;
    });
}

int dp_graph_add_edge(dp_graph_t* graph, int dpid, int nid, int to_dpid, int to_nid) {
    return guarded([&] {
        const Graph::Edge edge{{dpid, nid}, {to_dpid, to_nid}};
        graph->graph.add_edge(edge);
        graph->set_edge(edge);
        return 0;
    });
}

int dp_graph_remove_edge(dp_graph_t* graph, int dpid, int nid, int to_dpid, int to_nid) {
    return guarded([&] {
        const Graph::Edge edge{{dpid, nid}, {to_dpid, to_nid}};
        graph->graph.remove_edge(edge);
        graph->unset_edge(edge);
        return 0;
    });
}

int dp_graph_points(const dp_graph_t* graph) {
    return static_cast<int>(graph->graph.points().size());
}

int dp_graph_edges(const dp_graph_t* graph) {
    return static_cast<int>(graph->graph.edges().size());
}

int dp_graph_edges_to(const dp_graph_t* graph, int dpid, int nid) {
    return guarded([&] {
        graph->graph.process_of({dpid, nid});
        const auto& edges = graph->graph.edges();
        return static_cast<int>(std::count_if(edges.begin(), edges.end(), [&](const auto& e) {
            return e.second == PointName{dpid, nid};
        }));
    });
}

}  // extern "C"
