// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A directed point graph: what ports/dp/graph.h describes, without the endpoints themselves.
///
/// Invariants: two points of one node differ in their DPIDs; the ends of an edge are points of
/// different processes; an edge is there once. Thread safety: one thread. Errors: `GraphError` with
/// an errno and a sentence.
/// Source: the paper, 2: DPG = (N, EP, NID, P, E).

#include "rmem/error.hpp"

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace ports::dp {

class GraphError : public std::runtime_error {
public:
    GraphError(int error, const std::string& sentence)
        : std::runtime_error(sentence), error_(error) {}
    int error() const noexcept { return error_; }

private:
    int error_;
};

/// <dpid, nid>
struct PointName {
    int dpid, nid;
    auto operator<=>(const PointName&) const = default;
};

class RMEM_API Graph {
public:
    using Edge = std::pair<PointName, PointName>;

    /// Graphviz DOT.
    [[nodiscard]] static Graph parse(const std::string& text);

    void add_point(PointName name, int process);
    /// And the edges linked to it.
    void remove_point(PointName name);
    void add_edge(const Edge& edge);
    void remove_edge(const Edge& edge);

    int process_of(PointName name) const;
    int processes() const noexcept { return processes_; }
    const std::map<PointName, int>& points() const noexcept {
        return points_;
    }  ///< and their processes
    const std::set<Edge>& edges() const noexcept { return edges_; }

private:
    friend struct PlantedBug;  ///< a test's, which a check finds
    [[nodiscard]] bool joins_processes(const Edge& edge) const noexcept;

    std::map<PointName, int> points_;
    std::set<Edge> edges_;
    int processes_ = 0;
};

}  // namespace ports::dp
