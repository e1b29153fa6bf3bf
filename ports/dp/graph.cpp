// SPDX-License-Identifier: Apache-2.0
#include "ports/dp/graph.hpp"

#include "ports/dp/dp.h"
#include "rmem/base/check.hpp"

#include <fmt/format.h>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphviz.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace ports::dp {

namespace {

struct Vertex {
    std::string name, dpid, nid, process;
};
using Described =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, boost::no_property>;

std::string said(PointName p) {
    return fmt::format("<{},{}>", p.dpid, p.nid);
}

int number(const Vertex& vertex, const char* attribute, const std::string& text, int most) {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= most)
        return value;
    throw GraphError(EINVAL, fmt::format("vertex '{}' has {} = '{}'; give a number from 0 to {}",
                                         vertex.name, attribute, text, most));
}

Described read(const std::string& text) {
    Described described;
    boost::dynamic_properties properties(boost::ignore_other_properties);
    properties.property("node_id", boost::get(&Vertex::name, described));
    properties.property("dpid", boost::get(&Vertex::dpid, described));
    properties.property("nid", boost::get(&Vertex::nid, described));
    properties.property("process", boost::get(&Vertex::process, described));
    try {
        if (boost::read_graphviz(text, described, properties)) return described;
    } catch (const std::exception& error) {
        throw GraphError(EINVAL,
                         fmt::format("the text is no digraph of Graphviz: {}", error.what()));
    }
    throw GraphError(EINVAL, "the text is no digraph of Graphviz");
}

}  // namespace

Graph Graph::parse(const std::string& text) {
    const Described described = read(text);
    Graph graph;
    std::map<std::size_t, PointName> names;
    for (const auto v : boost::make_iterator_range(boost::vertices(described))) {
        const Vertex& vertex = described[v];
        const PointName name{number(vertex, "dpid", vertex.dpid, DP_MAX_DPID),
                             number(vertex, "nid", vertex.nid, DP_MAX_DPID)};
        graph.add_point(name, number(vertex, "process", vertex.process, DP_MAX_DPID));
        names.emplace(v, name);
    }
    for (const auto e : boost::make_iterator_range(boost::edges(described))) {
        graph.add_edge(
            {names.at(boost::source(e, described)), names.at(boost::target(e, described))});
    }
    return graph;
}

void Graph::add_point(PointName name, int process) {
    const auto is_elsewhere = [&](const auto& point) {
        return point.second == process && point.first.nid != name.nid;
    };
    if (std::any_of(points_.begin(), points_.end(), is_elsewhere)) {
        throw GraphError(EINVAL, fmt::format("process {} has endpoint {} on another node than its "
                                             "others; give a process endpoints of one node",
                                             process, said(name)));
    }
    if (!points_.emplace(name, process).second) {
        throw GraphError(
            EEXIST,
            fmt::format("endpoint {} occurs twice; give each process of a node DPIDs of its own",
                        said(name)));
    }
    processes_ = std::max(processes_, process + 1);
}

int Graph::process_of(PointName name) const {
    const auto it = points_.find(name);
    if (it != points_.end()) return it->second;
    throw GraphError(ENOENT, fmt::format("there is no endpoint {}", said(name)));
}

/// Its ends are points of different processes.
bool Graph::joins_processes(const Edge& edge) const noexcept {
    const auto from = points_.find(edge.first), to = points_.find(edge.second);
    return from != points_.end() && to != points_.end() && from->second != to->second;
}

void Graph::remove_point(PointName name) {
    process_of(name);
    points_.erase(name);
    std::erase_if(edges_, [&](const Edge& e) { return e.first == name || e.second == name; });
    RMEM_CHECK(std::all_of(edges_.begin(), edges_.end(),
                           [&](const Edge& e) { return joins_processes(e); }));
}

void Graph::add_edge(const Edge& edge) {
    if (process_of(edge.first) == process_of(edge.second)) {
        throw GraphError(
            EINVAL,
            fmt::format("the edge {} -> {} is within process {}; an edge must join two processes",
                        said(edge.first), said(edge.second), process_of(edge.first)));
    }
    if (!edges_.insert(edge).second) {
        throw GraphError(EEXIST, fmt::format("the edge {} -> {} is there already", said(edge.first),
                                             said(edge.second)));
    }
}

void Graph::remove_edge(const Edge& edge) {
    if (edges_.erase(edge) != 0) return;
    throw GraphError(ENOENT,
                     fmt::format("there is no edge {} -> {}", said(edge.first), said(edge.second)));
}

}  // namespace ports::dp
