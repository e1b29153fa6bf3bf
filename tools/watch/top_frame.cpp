// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/top_frame.hpp"

#include "rmem/base/check.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>

namespace tools {

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

/// The text, or as much of it as ends where a number, a name or a cell does, and "…".
std::string fitted_line(const std::string& text, std::size_t width) {
    if (text_width(text) <= width) return text;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    std::size_t characters = 0, end = 0;
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
        // Continuing bytes of UTF-8 take no place.
        if ((static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80U && ++characters >= width) break;
        const bool ends_here =
            text[i + 1] == ' ' && text[i] != ' ' &&
            (text[i] == ',' || static_cast<unsigned char>(text[i]) >= 0x80U ||  // such as →
             text.compare(i + 1, 2, "  ") == 0 ||
             (!is_digit(text[i]) && i + 2 < text.size() && !is_digit(text[i + 2])));
        if (ends_here) end = i + 1;
    }
    return width == 0 ? "" : text.substr(0, end) + "…";
}

void append(std::vector<Line>& to, std::vector<Line> more) {
    std::move(more.begin(), more.end(), std::back_inserter(to));
}

// ---- The ring

std::string frame_heading(const RingView& view) {
    const char* state = view.has_members ? "alive" : view.stays ? "kept" : "nobody is left";
    return fmt::format("ring {}: {}, link {}, {} of {} nodes up, {} of {} ranks alive, timing {}",
                       printable(view.name), state, view.link, view.nodes_up, view.nodes.size(),
                       view.ranks_alive, view.ranks, view.timing);
}

/// The way of a write from node to node; in brackets nodes that are passed over.
std::string order_text(const RingView& view) {
    if (!view.has_wire) return "order        none: all nodes share one bank";
    std::string text = "order       ";
    for (const NodeView& node : view.nodes) {
        const bool is_up = node.state == NodeState::up;
        text += is_up ? fmt::format(" {} →", node.node) : fmt::format(" ({}) →", node.node);
    }
    return text + fmt::format(" {}", view.nodes.front().node);
}

std::string times_text(const TimesView& times, const RingView& view) {
    return times.count == 0
               ? "nothing measured"
               : fmt::format("p50 {}, p99 {}, max {}, of {} {}", duration_text(times.p50_ns),
                             duration_text(times.p99_ns), duration_text(times.max_ns), times.count,
                             view.has_wire ? "writes" : "samples");
}

Line bound_line(const RingView& view) {
    if (view.bound_ns <= 0) return {"bound        none"};
    const std::string bound = duration_text(static_cast<std::uint64_t>(view.bound_ns));
    const std::string late = fmt::format("{} late by this host{}", view.late, plus(view.late_more));
    if (view.broken != 0) {
        return {fmt::format("bound        {}: broken by {} writes{}{}", bound, view.broken,
                            plus(view.broken_more), view.late == 0 ? "" : ", " + late),
                view.broken_more != 0 ? LineStyle::alarm : LineStyle::plain};
    }
    if (view.late == 0) return {"bound        " + bound + ": kept by all writes"};
    return {fmt::format("bound        {}: {}{}", bound, view.has_wire ? "kept by the wire, " : "",
                        late)};
}

std::vector<Line> remarks(const RingView& view) {
    std::vector<Line> lines;
    for (const NodeView& node : view.nodes) {
        if (!node.remark.empty())
            lines.push_back({fmt::format("remark       node {}: {}", node.node, node.remark),
                             LineStyle::alarm});
    }
    return lines;
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

constexpr std::size_t kNarrow = 40;  // labels take less room then

std::vector<Line> summary(const RingView& view, std::size_t width) {
    std::vector<Line> lines = {{frame_heading(view), LineStyle::heading},
                               {order_text(view)},
                               {"propagation  now: " + times_text(view.now, view)},
                               {"             ever: " + times_text(view.ever, view)},
                               bound_line(view)};
    append(lines, munet_lines(view));
    append(lines, remarks(view));
    if (width >= kNarrow) return lines;
    for (auto line = lines.begin() + 1; line != lines.end(); ++line) {
        const std::size_t label = line->text.find("  ");
        const std::size_t rest = line->text.find_first_not_of(' ', label);
        const bool is_times = line - lines.begin() == 2 || line - lines.begin() == 3;
        line->text.replace(0, rest, is_times ? "" : line->text.substr(0, label) + " ");
    }
    return lines;
}

// ---- Nodes

bool is_alarming(const NodeView& node) {
    return node.state == NodeState::down || node.state == NodeState::stopped ||
           node.broken_more != 0;
}

struct Column {
    const char* head;
    std::string (*cell)(const NodeView& node);
    int drop;  ///< the greater, the sooner it goes when there is little room; 0: stays
    enum Of { all, apart, remote } of = all;  ///< links; apart: whose nodes have a bank each
    enum Traffic { any, writes, messages } traffic = any;  ///< it is there when some is counted
};

template <double NodeView::*Rate>
std::string rate_cell(const NodeView& node) {
    return rate_text(node.*Rate);
}
/// Facts that are only known of a node on this host.
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
std::string late_cell(const NodeView& node) {
    return fmt::format("{}{}", node.late, plus(node.late_more));
}
std::string broken_cell(const NodeView& node) {
    return fmt::format("{}{}", node.broken, plus(node.broken_more));
}

constexpr std::array kColumns = {
    Column{">node", number_cell, 0},
    Column{"state", state_cell, 0},
    Column{">ranks", ranks_cell, 1},
    Column{">msgs/s", own_rate_cell<&NodeView::messages>, 0, Column::all, Column::messages},
    Column{">writes/s", program_rate_cell<&NodeView::writes>, 0, Column::all, Column::writes},
    Column{">bytes/s", program_rate_cell<&NodeView::bytes>, 2, Column::all, Column::writes},
    Column{">applied/s", own_rate_cell<&NodeView::applied>, 4, Column::apart},
    Column{">batches/s", rate_cell<&NodeView::batches>, 7, Column::remote},
    Column{">sent/s", own_rate_cell<&NodeView::datagrams_sent>, 5, Column::remote},
    Column{">received/s", own_rate_cell<&NodeView::datagrams_received>, 6, Column::remote},
    Column{">round trip", round_trip_cell, 8, Column::remote},
    Column{">p50", time_cell<&TimesView::p50_ns>, 0},
    Column{">p99", time_cell<&TimesView::p99_ns>, 0},
    Column{">max", time_cell<&TimesView::max_ns>, 1},
    Column{">broken", broken_cell, 0},
    Column{">late", late_cell, 3}};

bool is_shown(const Column& column, const RingView& view) {
    const Column::Of link = view.is_remote  ? Column::remote
                            : view.has_wire ? Column::apart
                                            : Column::all;
    if (column.of > link) return false;
    if (column.traffic == Column::messages) return view.has_messages;
    if (column.traffic == Column::any || !view.has_messages) return true;
    return std::any_of(view.nodes.begin(), view.nodes.end(),
                       [](const NodeView& node) { return node.has_traffic; });
}

/// The columns that are dropped least, up to `most_drop`.
std::vector<Line> node_table(const RingView& view, const std::vector<const NodeView*>& nodes,
                             int most_drop) {
    std::vector<std::string> head;
    std::vector<std::vector<std::string>> rows(nodes.size());
    for (const Column& column : kColumns) {
        if (column.drop > most_drop || !is_shown(column, view)) continue;
        const bool is_sampled = column.traffic == Column::messages && !view.has_wire;
        head.emplace_back(is_sampled ? ">~msgs/s" : column.head);
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
        return std::pair(trouble, node->writes + node->messages + node->applied + node->batches);
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
    auto lines = node_table(view, nodes, drop);
    while (drop > 0 && width_of(lines) > width) {
        lines = node_table(view, nodes, --drop);
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

// ---- Events

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

// ---- The map

const char* shade_of(const HeatMap::Cell& cell) {
    if (cell.heat > 0.5) return "█";
    if (cell.heat > 0.125) return "▓";
    if (cell.heat > 0.01) return "▒";
    return cell.ever ? "░" : "·";
}

constexpr std::size_t kMapLabel = 12;
constexpr std::size_t kMaxColumns = 256;
constexpr std::size_t kPlainRows = 4;  // where there is room for any number

std::size_t map_columns(std::size_t width) {
    std::size_t columns = 8;
    while (2 * columns + kMapLabel <= width && columns < kMaxColumns) columns *= 2;
    return columns;
}

std::vector<Line> map_lines(const RingView& view, ShownMap shown, std::size_t width) {
    if (shown.map == nullptr || shown.map->cells().empty()) return {};
    const HeatMap& map = *shown.map;
    const std::size_t end = map.from() + map.bytes();
    std::vector<Line> lines = {
        {fmt::format(
             "changes in the bank of node {}: a character is {}, to {}{}{}", shown.node,
             size_text(map.cell_bytes()), offset_text(end),
             end <= view.user_bytes
                 ? ""
                 : fmt::format(", user's memory ends at {}", offset_text(view.user_bytes)),
             map.line_step() == 1 ? "" : fmt::format(", 1 of {} lines looked at", map.line_step())),
         LineStyle::heading}};
    const std::size_t columns = map_columns(width);
    for (std::size_t row = 0; row < map.cells().size(); row += columns) {
        std::string text = offset_text(map.from() + row * map.cell_bytes()) + "  ";
        const std::size_t last = std::min(row + columns, map.cells().size());
        for (std::size_t i = row; i < last; ++i) text += shade_of(map.cells()[i]);
        lines.push_back({text});
    }
    lines.push_back({"█ most of it has just changed  ▓ some  ▒ little  ░ before  · never"});
    return lines;
}

// ---- All of it

/// As many of the parts as fit.
std::string joined(const std::vector<std::string>& parts, std::size_t width) {
    std::string text;
    for (const std::string& part : parts) {
        const std::string more = text.empty() ? part : text + "  " + part;
        if (text_width(more) > width) break;
        text = more;
    }
    return text;
}

Line footer(const Viewport& port, std::size_t first, std::size_t room, std::size_t lines) {
    std::vector<std::string> parts = {"q end"};
    if (lines > room) {
        parts.push_back(
            fmt::format("lines {}-{} of {}", first + 1, std::min(first + room, lines), lines));
        parts.emplace_back("↑↓ scroll");
    }
    for (const char* part : {"+- zoom", "←→ move", "0 all memory"}) parts.emplace_back(part);
    parts.emplace_back(port.all_nodes ? "a fewer nodes" : "a all nodes");
    return {joined(parts, port.width), LineStyle::footer};
}

Frame fit(std::vector<Line> lines, const Viewport& port) {
    Frame frame;
    if (port.height > 1 && port.has_keys) {
        const std::size_t room = port.height - 1;
        const std::size_t all = lines.size();
        frame.scroll = std::min(port.scroll, all > room ? all - room : 0);
        const Line last = footer(port, frame.scroll, room, all);
        lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(frame.scroll));
        lines.resize(room);
        lines.push_back(last);
    } else if (port.height != 0 && lines.size() > port.height) {
        const std::size_t hidden = lines.size() - port.height + 1;
        lines.resize(port.height - 1);
        lines.push_back({fmt::format("{} more lines do not fit here", hidden)});
    }
    for (Line& line : lines) {
        line.text = fitted_line(line.text, port.width);
        RMEM_CHECK(text_width(line.text) <= port.width);
    }
    RMEM_CHECK(port.height == 0 || lines.size() <= port.height);
    frame.lines = std::move(lines);
    return frame;
}

nlohmann::json times_json(const TimesView& times) {
    return {{"count", times.count},
            {"p50", times.p50_ns},
            {"p99", times.p99_ns},
            {"max", times.max_ns}};
}

nlohmann::json node_json(const NodeView& node) {
    nlohmann::json result = {{"node", node.node},
                             {"state", name_of(node.state)},
                             {"here", node.is_here},
                             {"ranks", node.ranks},
                             {"live_ranks", node.ranks_alive},
                             {"counts_writes", node.has_traffic},
                             {"writes_per_s", node.writes},
                             {"bytes_per_s", node.bytes},
                             {"messages_per_s", node.messages},
                             {"applied_per_s", node.applied},
                             {"batches_per_s", node.batches},
                             {"datagrams_sent_per_s", node.datagrams_sent},
                             {"datagrams_received_per_s", node.datagrams_received},
                             {"round_trip_ns", node.round_trip_ns},
                             {"propagation_ns", times_json(node.now)},
                             {"propagation_ever_ns", times_json(node.ever)},
                             {"bound_broken", node.broken},
                             {"bound_broken_now", node.broken_more},
                             {"late_by_host", node.late},
                             {"late_by_host_now", node.late_more}};
    if (!node.remark.empty()) result["remark"] = node.remark;
    if (node.munet) {
        result["munet"] = {{"alive", node.munet->runs},
                           {"pid", node.munet->pid},
                           {"endpoints", node.munet->endpoints},
                           {"backlog", node.munet->backlog}};
    }
    return result;
}

nlohmann::json map_json(ShownMap shown) {
    nlohmann::json heats = nlohmann::json::array();
    for (const auto& cell : shown.map->cells()) heats.push_back(cell.heat);
    return {{"node", shown.node},
            {"from", shown.map->from()},
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

std::size_t map_cells(const Viewport& port) {
    constexpr std::size_t kFewest = 2, kMax = 40;
    const std::size_t rows =
        port.height == 0 ? kPlainRows : std::clamp(port.height / 3, kFewest, kMax);
    return map_columns(port.width) * rows;
}

Frame frame_of(const RingView& view, ShownMap map, const Viewport& port) {
    if (!view.exists) {
        return fit({{"no such ring on this host any more", LineStyle::alarm}}, port);
    }
    for (std::size_t n = 0; n < view.nodes.size(); ++n) RMEM_CHECK(view.nodes[n].node == n);
    RMEM_CHECK(!view.nodes.empty());
    std::vector<Line> lines = summary(view, port.width);
    const auto events = event_lines(view);
    const auto cells = map_lines(view, map, port.width);
    std::size_t most = view.nodes.size();
    const std::size_t others = lines.size() + events.size() + cells.size() + 4;  // and 3 gaps
    if (port.height != 0 && !port.all_nodes && most + others > port.height) {
        const std::size_t room = port.height > others + 1 ? port.height - others - 1 : 0;
        most = std::min(most, std::max(room, kFewestNodes));
    }
    const auto add_part = [&](std::vector<Line> part) {
        if (part.empty()) return;
        lines.push_back({});
        append(lines, std::move(part));
    };
    add_part(node_lines(view, most, port.width));
    add_part(events);
    add_part(cells);
    return fit(std::move(lines), port);
}

nlohmann::json frame_json(const RingView& view, ShownMap map) {
    nlohmann::json frame = {{"exists", view.exists}};
    if (!view.exists) return frame;
    frame.update({{"name", view.name},
                  {"state", view.has_members ? "alive"
                            : view.stays     ? "kept"
                                             : "dead"},
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
                  {"bound_broken_now", view.broken_more},
                  {"late_by_host", view.late},
                  {"late_by_host_now", view.late_more}});
    frame["order"] = nlohmann::json::array();
    frame["nodes"] = nlohmann::json::array();
    for (const NodeView& node : view.nodes) {
        if (view.has_wire && node.state == NodeState::up) frame["order"].push_back(node.node);
        frame["nodes"].push_back(node_json(node));
    }
    frame["events"] = nlohmann::json::array();
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
