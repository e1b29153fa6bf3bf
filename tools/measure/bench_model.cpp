// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/bench_model.hpp"

#include "tools/json.hpp"
#include "tools/measure/model.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace tools {

namespace {

using Series = std::map<std::string, std::vector<double>>;

struct Parameter {
    const char* name;
    const char* meaning;
};
constexpr std::array<Parameter, 12> kParameters = {{
    {"O_s", "send overhead: dp_write"},
    {"O_r", "receive overhead, of a rank that polls"},
    {"O_r_run", "the same for one of several that have come"},
    {"O_r_async", "the same while the receiver computes"},
    {"U_r", "user receive overhead: dp_read, dp_fsync"},
    {"g_s", "gap between messages, sender"},
    {"g_r", "gap between messages, receiver"},
    {"L", "network latency; n/a: within O_s and O_r, which do the transfer"},
    {"B_L", "bytes the network buffers"},
    {"M_ctc", "copy, cache to cache"},
    {"M_ctm", "copy, cache to memory"},
    {"M_mtm", "copy, memory to memory"},
}};

/// Nothing: it means nothing here, since few values are above 0.
std::optional<bench::Line> line_of(const Series& series, const std::string& name) {
    std::vector<double> bytes, values;
    for (std::size_t i = 0; i < series.at(name).size(); ++i) {
        if (series.at(name)[i] <= 0) continue;
        bytes.push_back(series.at("bytes")[i]);
        values.push_back(series.at(name)[i]);
    }
    if (values.size() < 2 || values.size() < series.at(name).size() / 2) return std::nullopt;
    return bench::fit(bytes, values);
}

/// As measured for this length, else by the line; 0 where it means nothing.
double value_at(const Series& series, const std::string& name, double bytes) {
    const auto line = line_of(series, name);
    if (!line) return 0;
    const auto& sizes = series.at("bytes");
    const auto it = std::find(sizes.begin(), sizes.end(), bytes);
    const double value = it == sizes.end()
                             ? line->at(bytes)
                             : series.at(name)[static_cast<std::size_t>(it - sizes.begin())];
    return std::max(value, 0.0);
}

struct Predicted {
    double bytes, packets, measured_ns;
    bench::Prediction by;
    bool meets_condition;  ///< O_s + O_r + U_r < g < L
};

std::vector<Predicted> predictions(const Series& series) {
    const auto at = [&](const char* name, double bytes) { return value_at(series, name, bytes); };
    std::vector<Predicted> all;
    for (std::size_t i = 0; i < series.at("long_bytes").size(); ++i) {
        const double b = series.at("packet_bytes")[i], k = series.at("long_packets")[i];
        const bench::Packet packet{at("one_way", b), at("O_r_run", b), at("U_r", b), at("g_s", b),
                                   at("g_r", b)};
        const double overheads = at("O_s", b) + at("O_r", b) + at("U_r", b);
        const double g = std::max(packet.g_s, packet.g_r);
        all.push_back({series.at("long_bytes")[i], k, series.at("long_ns")[i],
                       bench::predict(packet, k), overheads < g && g < at("L", b)});
    }
    return all;
}

std::string cell(const Series& series, const char* name, std::size_t i, bool means) {
    const auto& values = series.at(name);
    return means && i < values.size() && values[i] > 0 ? fmt::format("{:.0f}", values[i]) : "n/a";
}

std::string text_of(const Series& series) {
    const auto& bytes = series.at("bytes");
    std::vector<std::string> head = {"parameter, ns"};
    for (const double b : bytes) head.push_back(fmt::format(">{:.0f} B", b));
    head.emplace_back("fitted: a + b m");
    Table rows(head);
    for (const Parameter& p : kParameters) {
        const auto line = line_of(series, p.name);
        std::vector<std::string> row = {p.name};
        for (std::size_t i = 0; i < bytes.size(); ++i)
            row.push_back(cell(series, p.name, i, line.has_value()));
        row.push_back(line ? fmt::format("{:.0f} + {:.3f} m", line->fixed, line->per_byte) : "n/a");
        rows.add(row);
    }
    Table long_rows({">bytes", ">packets", ">T_p2p ns", ">predicted", ">deviation", "equation"});
    bool meets = true;
    for (const Predicted& p : predictions(series)) {
        meets = meets && p.meets_condition;
        long_rows.add({fmt::format("{:.0f}", p.bytes), fmt::format("{:.0f}", p.packets),
                       fmt::format("{:.0f}", p.measured_ns), fmt::format("{:.0f}", p.by.ns),
                       fmt::format("{:+.0f} %", (p.by.ns / p.measured_ns - 1) * 100),
                       fmt::format("{}", p.by.equation)});
    }
    std::string text = rows.text() + "\n";
    for (const Parameter& p : kParameters) text += fmt::format("{:<10} {}\n", p.name, p.meaning);
    text += fmt::format("g_r is of {}.\n", series.at("g_r_senders")[0] == 2
                                               ? "two senders"
                                               : "one sender: three ranks need "
                                                 "three processors");
    text += "\n" + long_rows.text();
    text += fmt::format(
        "equation 1: O_s + (k-1) g + L + O_r + U_r, where O_r_run + U_r < g; 2, elsewhere: O_s + L "
        "+ O_r + U_r + (k-1) (O_r_run + U_r).\nO_s + L + O_r + U_r is the one-way time.\nThe "
        "paper's condition O_s + O_r + U_r < g < L {}.\n",
        meets ? "holds" : "does not hold here");
    text += fmt::format("one way of 8 bytes: dp_write {:.0f}, bbp_send {:.0f}, ÷ {:.2f}\n",
                        series.at("dp_8")[0], series.at("bbp_8")[0],
                        series.at("dp_8")[0] / series.at("bbp_8")[0]);
    return text;
}

nlohmann::json json_of(const Series& series) {
    nlohmann::json parameters = nlohmann::json::object();
    for (const Parameter& p : kParameters) {
        const auto line = line_of(series, p.name);
        if (!line) {
            parameters[p.name] = nullptr;
            continue;
        }
        parameters[p.name] = {
            {"values", series.at(p.name)}, {"fixed", line->fixed}, {"per_byte", line->per_byte}};
    }
    nlohmann::json predicted = nlohmann::json::array();
    for (const Predicted& p : predictions(series)) {
        predicted.push_back({{"bytes", p.bytes},
                             {"packets", p.packets},
                             {"measured_ns", p.measured_ns},
                             {"predicted_ns", p.by.ns},
                             {"deviation", p.by.ns / p.measured_ns - 1},
                             {"equation", p.by.equation},
                             {"meets_condition", p.meets_condition}});
    }
    return {{"bytes", series.at("bytes")},
            {"parameters", parameters},
            {"g_r_senders", series.at("g_r_senders")[0]},
            {"t_p2p", predicted},
            {"dp_8_ns", series.at("dp_8")[0]},
            {"bbp_8_ns", series.at("bbp_8")[0]}};
}

}  // namespace

void bench_model(const bench::GroupOptions& group, bool json) {
    if (group.ranks != 2) {
        throw UsageError(fmt::format(
            "the model is measured between two ranks, not {}; leave -n out", group.ranks));
    }
    bench::Results results;
    bench::measure_model(group, results);
    const Series series = results.all();
    if (json) {
        nlohmann::json all = json_of(series);
        all["figure"] = "model";
        all["link"] = group.link;
        all["layout"] = group.layout;
        return show_json(all);
    }
    show(fmt::format("\nmodel: link {}, layout {}\n", group.link, group.layout) + text_of(series));
}

}  // namespace tools
