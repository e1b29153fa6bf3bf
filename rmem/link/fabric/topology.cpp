// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/topology.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/small_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

namespace rmem::fabric {

namespace {

constexpr unsigned kNoRack = ~0U;

/// Where a sentence is about.
struct Line {
    const std::string& file;
    unsigned number;

    [[noreturn]] void refuse(const std::string& why) const {
        throw Error(Errc::bad_environment,
                    fmt::format("RMEM_TOPOLOGY: line {} of '{}': {}; a line is `rack` and numbers "
                                "of nodes, as in `rack 0-7 40`, or `fan-out tree` or `fan-out "
                                "chain`",
                                number, file, why));
    }
};

unsigned number_of(std::string_view text, unsigned nodes, const Line& line) {
    unsigned number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || rest != text.data() + text.size())
        line.refuse(fmt::format("'{}' is no number", text));
    if (number >= nodes)
        line.refuse(fmt::format("there is no node {}, the ring has {}", number, nodes));
    return number;
}

}  // namespace

Topology::Topology(unsigned nodes) : rack_of_(nodes, 0), members_(1) {
    for (unsigned n = 0; n < nodes; ++n) members_.front().push_back(n);
}

Topology Topology::parse(const std::string& text, const std::string& name, unsigned nodes) {
    Topology topology(nodes);
    topology.members_.clear();
    topology.rack_of_.assign(nodes, kNoRack);
    std::istringstream lines(text);
    std::string content;
    for (unsigned number = 1; std::getline(lines, content); ++number) {
        const Line line{name, number};
        std::istringstream words(content.substr(0, content.find('#')));
        std::string word;
        if (!(words >> word)) continue;
        if (word == "fan-out") {
            std::string way;
            if (!(words >> way) || (way != "tree" && way != "chain"))
                line.refuse(fmt::format("there is no fan-out '{}'", way));
            topology.fan_out_ = way == "chain" ? FanOut::chain : FanOut::tree;
            if (words >> word) line.refuse(fmt::format("'{}' is too much", word));
            continue;
        }
        if (word != "rack") line.refuse(fmt::format("'{}' is neither", word));
        const auto rack = static_cast<unsigned>(topology.members_.size());
        std::vector<unsigned> members;
        while (words >> word) {
            const std::size_t dash = word.find('-');
            const unsigned first = number_of(std::string_view(word).substr(0, dash), nodes, line);
            const unsigned last =
                dash == std::string::npos
                    ? first
                    : number_of(std::string_view(word).substr(dash + 1), nodes, line);
            if (last < first) line.refuse(fmt::format("'{}' ends before it begins", word));
            for (unsigned n = first; n <= last; ++n) {
                if (topology.rack_of_[n] != kNoRack)
                    line.refuse(fmt::format("node {} is in a rack already", n));
                topology.rack_of_[n] = rack;
                members.push_back(n);
            }
        }
        if (members.empty()) line.refuse("the rack has no nodes");
        topology.members_.push_back(std::move(members));
    }
    for (unsigned n = 0; n < nodes; ++n) {
        if (topology.rack_of_[n] != kNoRack) continue;
        topology.rack_of_[n] = topology.racks();
        topology.members_.push_back({n});
    }
    std::size_t placed = 0;
    for (const auto& members : topology.members_) placed += members.size();
    RMEM_CHECK(placed == nodes);
    return topology;
}

Topology Topology::read(const std::string& path, unsigned nodes) {
    const std::string text = user_file(path, "RMEM_TOPOLOGY's file", Errc::bad_environment);
    return parse(text, path, nodes);
}

/// To `racks` racks behind that one in a circle.
void Topology::add_heads(std::vector<Stop>& stops, unsigned after, unsigned racks,
                         const Reaches& reaches) const {
    for (unsigned i = 1; i <= racks; ++i) {
        const std::vector<unsigned>& members = members_[(after + i) % this->racks()];
        std::optional<unsigned> head;
        for (const unsigned node : members) {
            if (reaches(node)) {
                head = node;
                break;
            }
        }
        const unsigned left = fan_out_ == FanOut::chain ? racks - i + 1 : 1;
        if (head) {
            stops.push_back({*head, members.size() == 1 && left == 1 ? 0 : left});
            if (fan_out_ == FanOut::chain) return;
        } else {
            for (const unsigned node : members) stops.push_back({node, 0});
        }
    }
}

std::vector<Topology::Stop> Topology::plan(unsigned from, const Reaches& reaches) const {
    std::vector<Stop> stops;
    const auto nodes = static_cast<unsigned>(rack_of_.size());
    for (unsigned i = 1; i < nodes; ++i) {
        const unsigned node = (from + i) % nodes;
        if (rack_of_[node] == rack_of_[from]) stops.push_back({node, 0});
    }
    add_heads(stops, rack_of_[from], racks() - 1, reaches);
    return stops;
}

std::vector<Topology::Stop> Topology::pass_on(unsigned head, unsigned racks,
                                              const Reaches& reaches) const {
    std::vector<Stop> stops;
    for (const unsigned node : members_[rack_of_[head]]) {
        if (node != head) stops.push_back({node, 0});
    }
    if (racks > 1) add_heads(stops, rack_of_[head], std::min(racks, this->racks()) - 1, reaches);
    return stops;
}

}  // namespace rmem::fabric
