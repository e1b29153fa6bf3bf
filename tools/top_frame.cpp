// SPDX-License-Identifier: Apache-2.0
#include "tools/top_frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "tools/output.hpp"

namespace tools {

using nlohmann::json;

namespace {

constexpr std::size_t kFewestNodes = 4;  // lines that nodes keep when others want room

std::string plus(std::uint64_t more) {
    return more == 0 ? "" : fmt::format(" (+{})", more);
}

std::vector<Line> lines_of(const std::string& text) {
    std::vector<Line> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back({line});
    return lines;
}

void append(std::vector<Line>& to, std::vector<Line> more) {
    std::move(more.begin(), more.end(), std::back_inserter(to));
}

// ---- The ring -----------------------------------------------------------------------------------

std::string heading(const RingView& view) {
    return fmt::format("ring {}: {}, link {}, timing {}, {} of {} nodes up, {} of {} ranks alive",
                       printable(view.name), view.has_members ? "alive" : "nobody is left",
                       view.link, view.timing, view.nodes_up, view.nodes.size(), view.ranks_alive,
                       view.ranks);
}

/// Who takes a write from whom; in brackets who is passed over.
std::string order_text(const RingView& view) {
    if (!view.has_wire) return "order        none: all nodes share one bank";
    std::string text = "order       ";
    for (const NodeView& node : view.nodes) {
        const bool is_up = node.state == NodeState::up;
        text += is_up ? fmt::format(" {} →", node.node) : fmt::format(" ({}) →", node.node);
    }
    return text + fmt::format(" {}", view.nodes.front().node);
}

std::string times_text(const TimesView& times) {
    return times.count == 0
               ? "nothing measured"
               : fmt::format("p50 {}, p99 {}, max {} of {} writes", duration_text(times.p50_ns),
                             duration_text(times.p99_ns), duration_text(times.max_ns), times.count);
}

Line bound_line(const RingView& view) {
    if (view.bound_ns <= 0) return {"bound        none"};
    const std::string bound = duration_text(static_cast<std::uint64_t>(view.bound_ns));
    if (view.broken == 0) return {"bound        " + bound + ": kept by all writes"};
    return {fmt::format("bound        {}: broken by {} writes{}", bound, view.broken,
                        plus(view.broken_more)),
            view.broken_more != 0 ? LineStyle::alarm : LineStyle::plain};
}

/// A line for each daemon.
std::vector<Line> munet_lines(const RingView& view) {
    std::vector<Line> lines;
    for (const NodeView& node : view.nodes) {
        if (!node.munet) continue;
        const MunetView& munet = *node.munet;
        const std::string text =
            fmt::format("MU-Net       node {}: {} endpoints, {} frames wait for a link", node.node,
                        munet.endpoints, munet.backlog);
        lines.push_back(munet.runs
                            ? Line{text}
                            : Line{fmt::format("{}; its daemon {} has ended", text, munet.pid),
                                   LineStyle::alarm});
    }
    return lines;
}

std::vector<Line> summary(const RingView& view) {
    std::vector<Line> lines = {{heading(view), LineStyle::heading},
                               {order_text(view)},
                               {"propagation  now: " + times_text(view.now)},
                               {"             ever: " + times_text(view.ever)},
                               bound_line(view)};
    append(lines, munet_lines(view));
    return lines;
}

// ---- Nodes --------------------------------------------------------------------------------------

bool is_alarming(const NodeView& node) {
    return node.state == NodeState::down || node.state == NodeState::stopped ||
           node.broken_more != 0;
}

struct Column {
    const char* head;
    std::string (*cell)(const NodeView& node);
    int drop;  ///< the greater, the sooner it goes when there is little room; 0: stays
    enum Of { all, apart, udp } of = all;  ///< links; apart: whose nodes have a bank each
};

template <double NodeView::*Rate>
std::string rate_cell(const NodeView& node) {
    return rate_text(node.*Rate);
}
/// What is only known of a node on this host.
template <double NodeView::*Rate>
std::string own_rate_cell(const NodeView& node) {
    return node.is_here ? rate_text(node.*Rate) : "-";
}
template <double NodeView::*Rate>
std::string program_rate_cell(const NodeView& node) {
    return node.has_traffic ? rate_text(node.*Rate) : "-";
}
template <std::uint64_t TimesView::*Time>
std::string time_cell(const NodeView& node) {
    return node.now.count == 0 ? "-" : duration_text(node.now.*Time);
}
std::string number_cell(const NodeView& node) {
    return fmt::format("{}", node.node);
}
std::string state_cell(const NodeView& node) {
    return name_of(node.state);
}
std::string ranks_cell(const NodeView& node) {
    return node.ranks == 0 ? "-" : fmt::format("{}/{}", node.ranks_alive, node.ranks);
}
std::string round_trip_cell(const NodeView& node) {
    if (node.round_trip_ns <= 0) return "-";
    return duration_text(static_cast<std::uint64_t>(node.round_trip_ns));
}
std::string broken_cell(const NodeView& node) {
    return fmt::format("{}{}", node.broken, plus(node.broken_more));
}

constexpr std::array kColumns = {
    Column{">node", number_cell, 0},
    Column{"state", state_cell, 0},
    Column{">ranks", ranks_cell, 1},
    Column{">writes/s", program_rate_cell<&NodeView::writes>, 0},
    Column{">bytes/s", program_rate_cell<&NodeView::bytes>, 2},
    Column{">applied/s", own_rate_cell<&NodeView::applied>, 4, Column::apart},
    Column{">batches/s", rate_cell<&NodeView::batches>, 7, Column::udp},
    Column{">sent/s", own_rate_cell<&NodeView::datagrams_sent>, 5, Column::udp},
    Column{">received/s", own_rate_cell<&NodeView::datagrams_received>, 6, Column::udp},
    Column{">round trip", round_trip_cell, 8, Column::udp},
    Column{">p50", time_cell<&TimesView::p50_ns>, 0},
    Column{">p99", time_cell<&TimesView::p99_ns>, 0},
    Column{">max", time_cell<&TimesView::max_ns>, 0},
    Column{">broken", broken_cell, 0}};

/// The columns that are dropped least, up to `most_drop`.
std::vector<Line> node_table(const std::vector<const NodeView*>& nodes, Column::Of link,
                             int most_drop) {
    std::vector<std::string> head;
    std::vector<std::vector<std::string>> rows(nodes.size());
    for (const Column& column : kColumns) {
        if (column.drop > most_drop || column.of > link) continue;
        head.emplace_back(column.head);
        for (std::size_t i = 0; i < nodes.size(); ++i) rows[i].push_back(column.cell(*nodes[i]));
    }
    Table table(std::move(head));
    for (auto& row : rows) table.add(std::move(row));
    return lines_of(table.text());
}

std::size_t width_of(const std::vector<Line>& lines) {
    std::size_t width = 0;
    for (const Line& line : lines) width = std::max(width, text_width(line.text));
    return width;
}

/// Those that matter most when not all have room: not up, then busy; in the order of their numbers.
std::vector<const NodeView*> chosen_nodes(const RingView& view, std::size_t most) {
    std::vector<const NodeView*> nodes;
    for (const NodeView& node : view.nodes) nodes.push_back(&node);
    if (nodes.size() <= most) return nodes;
    const auto weight = [](const NodeView* node) {
        const int trouble =
            is_alarming(*node) ? 2 : static_cast<int>(node->state == NodeState::joining);
        return std::pair(trouble, node->writes + node->applied + node->batches);
    };
    std::stable_sort(nodes.begin(), nodes.end(), [&](const NodeView* one, const NodeView* other) {
        return weight(one) > weight(other);
    });
    nodes.resize(most);
    std::sort(nodes.begin(), nodes.end(),
              [](const NodeView* one, const NodeView* other) { return one->node < other->node; });
    return nodes;
}

std::vector<Line> node_lines(const RingView& view, std::size_t most, std::size_t width) {
    const auto nodes = chosen_nodes(view, most);
    int drop = static_cast<int>(kColumns.size());
    const Column::Of link = view.link == "udp" ? Column::udp
                            : view.has_wire    ? Column::apart
                                               : Column::all;
    auto lines = node_table(nodes, link, drop);
    while (drop > 0 && width_of(lines) > width) {
        lines = node_table(nodes, link, --drop);
    }
    lines[0].style = LineStyle::heading;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (is_alarming(*nodes[i])) lines[i + 1].style = LineStyle::alarm;
    }
    if (nodes.size() < view.nodes.size()) {
        lines.push_back({fmt::format("  and {} more", view.nodes.size() - nodes.size())});
    }
    return lines;
}

// ---- Events -------------------------------------------------------------------------------------

std::string kinds_without_events(const RingView& view) {
    std::string none;
    for (const std::string kind : event_kinds()) {
        const bool any = std::any_of(view.events.begin(), view.events.end(),
                                     [&](const EventView& event) { return event.kind == kind; });
        if (!any && kind != "other") none += (none.empty() ? "no " : ", ") + kind;
    }
    return none;
}

std::vector<Line> event_lines(const RingView& view) {
    std::vector<Line> lines;
    if (!view.events.empty()) {
        const double seconds = static_cast<double>(view.elapsed_ns) / 1e9;
        Table table({"what", "counter", ">total", ">now/s", "unit", "nodes", "meaning"});
        for (const EventView& event : view.events) {
            const double rate = seconds > 0 ? static_cast<double>(event.more) / seconds : 0;
            table.add({event.kind, event.name, fmt::format("{}", event.total), rate_text(rate),
                       event.unit, numbers_text(event.nodes), event.meaning});
        }
        lines = lines_of(table.text());
        lines[0].style = LineStyle::heading;
    }
    const std::string none = kinds_without_events(view);
    if (!none.empty()) lines.push_back({none});
    return lines;
}

// ---- The map ------------------------------------------------------------------------------------

const char* shade_of(const HeatMap::Cell& cell) {
    if (cell.heat > 0.5) return "█";
    if (cell.heat > 0.125) return "▓";
    if (cell.heat > 0.01) return "▒";
    return cell.ever ? "░" : "·";
}

std::vector<Line> map_lines(const RingView& view, ShownMap shown, std::size_t width) {
    constexpr std::size_t kLabel = 12;
    if (shown.map == nullptr || shown.map->cells().empty()) return {};
    const HeatMap& map = *shown.map;
    const std::string step =
        map.line_step() == 1 ? "" : fmt::format("; 1 of {} lines looked at", map.line_step());
    std::vector<Line> lines = {
        {fmt::format("changes in the bank of node {}: a character is {}, user's memory ends at "
                     "{}{}",
                     shown.node, size_text(map.cell_bytes()), offset_text(view.user_bytes), step),
         LineStyle::heading}};
    std::size_t columns = 64;
    while (columns > 8 && columns + kLabel > width) columns /= 2;
    for (std::size_t row = 0; row < map.cells().size(); row += columns) {
        std::string text = offset_text(row * map.cell_bytes()) + "  ";
        const std::size_t end = std::min(row + columns, map.cells().size());
        for (std::size_t i = row; i < end; ++i) text += shade_of(map.cells()[i]);
        lines.push_back({text});
    }
    lines.push_back({"█ most of it has just changed  ▓ some  ▒ little  ░ before  · never"});
    return lines;
}

// ---- All of it ----------------------------------------------------------------------------------

void fit(std::vector<Line>& lines, std::size_t width, std::size_t height) {
    if (height != 0 && lines.size() > height) {
        const std::size_t hidden = lines.size() - height + 1;
        lines.resize(height - 1);
        lines.push_back({fmt::format("{} more lines do not fit here", hidden)});
    }
    for (Line& line : lines) line.text = fitted(line.text, width);
}

json times_json(const TimesView& times) {
    return {{"count", times.count},
            {"p50", times.p50_ns},
            {"p99", times.p99_ns},
            {"max", times.max_ns}};
}

json node_json(const NodeView& node) {
    json result = {{"node", node.node},
                   {"state", name_of(node.state)},
                   {"here", node.is_here},
                   {"ranks", node.ranks},
                   {"live_ranks", node.ranks_alive},
                   {"counts_writes", node.has_traffic},
                   {"writes_per_s", node.writes},
                   {"bytes_per_s", node.bytes},
                   {"applied_per_s", node.applied},
                   {"batches_per_s", node.batches},
                   {"datagrams_sent_per_s", node.datagrams_sent},
                   {"datagrams_received_per_s", node.datagrams_received},
                   {"round_trip_ns", node.round_trip_ns},
                   {"propagation_ns", times_json(node.now)},
                   {"propagation_ever_ns", times_json(node.ever)},
                   {"bound_broken", node.broken},
                   {"bound_broken_now", node.broken_more}};
    if (node.munet) {
        result["munet"] = {{"alive", node.munet->runs},
                           {"pid", node.munet->pid},
                           {"endpoints", node.munet->endpoints},
                           {"backlog", node.munet->backlog}};
    }
    return result;
}

json map_json(ShownMap shown) {
    json heats = json::array();
    for (const auto& cell : shown.map->cells()) heats.push_back(cell.heat);
    return {{"node", shown.node},
            {"cell_bytes", shown.map->cell_bytes()},
            {"line_step", shown.map->line_step()},
            {"heat", heats}};
}

}  // namespace

std::string rate_text(double per_second) {
    constexpr std::array kUnits = {"", "k", "M", "G", "T"};
    std::size_t unit = 0;
    for (; per_second >= 999.5 && unit + 1 < kUnits.size(); ++unit) per_second /= 1000;
    if (per_second == 0) return "0";
    return fmt::format("{:.{}f}{}", per_second, per_second < 99.95 ? 1 : 0, kUnits[unit]);
}

std::vector<Line> frame_of(const RingView& view, ShownMap map, std::size_t width,
                           std::size_t height) {
    std::vector<Line> lines;
    if (!view.exists) {
        lines = {{"no such ring on this host any more", LineStyle::alarm}};
        fit(lines, width, height);
        return lines;
    }
    lines = summary(view);
    const auto events = event_lines(view);
    const auto cells = map_lines(view, map, width);
    std::size_t most = view.nodes.size();
    const std::size_t others = lines.size() + events.size() + cells.size() + 4;  // and 3 gaps
    if (height != 0 && most + others > height) {
        const std::size_t room = height > others + 1 ? height - others - 1 : 0;
        most = std::min(most, std::max(room, kFewestNodes));
    }
    const auto add_part = [&](std::vector<Line> part) {
        if (part.empty()) return;
        lines.push_back({});
        append(lines, std::move(part));
    };
    add_part(node_lines(view, most, width));
    add_part(events);
    add_part(cells);
    fit(lines, width, height);
    return lines;
}

json frame_json(const RingView& view, ShownMap map) {
    json frame = {{"exists", view.exists}};
    if (!view.exists) return frame;
    frame.update({{"name", view.name},
                  {"state", view.has_members ? "alive" : "dead"},
                  {"link", view.link},
                  {"timing", view.timing},
                  {"elapsed_ns", view.elapsed_ns},
                  {"bound_ns", view.bound_ns},
                  {"nodes_up", view.nodes_up},
                  {"live_ranks", view.ranks_alive},
                  {"ranks", view.ranks},
                  {"propagation_ns", times_json(view.now)},
                  {"propagation_ever_ns", times_json(view.ever)},
                  {"bound_broken", view.broken},
                  {"bound_broken_now", view.broken_more}});
    frame["order"] = json::array();
    frame["nodes"] = json::array();
    for (const NodeView& node : view.nodes) {
        if (view.has_wire && node.state == NodeState::up) frame["order"].push_back(node.node);
        frame["nodes"].push_back(node_json(node));
    }
    frame["events"] = json::array();
    for (const EventView& event : view.events) {
        frame["events"].push_back({{"kind", event.kind},
                                   {"counter", event.name},
                                   {"total", event.total},
                                   {"now", event.more},
                                   {"unit", event.unit},
                                   {"nodes", event.nodes}});
    }
    if (map.map != nullptr) frame["map"] = map_json(map);
    return frame;
}

}  // namespace tools
