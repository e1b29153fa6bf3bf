// SPDX-License-Identifier: Apache-2.0
// `rmem sim paper`: the paper's numbers beside the simulation's.

#include "simulator/paper/figures.hpp"
#include "simulator/paper/table.hpp"
#include "tools/json.hpp"
#include "tools/measure/figures.hpp"
#include "tools/measure/samples.hpp"
#include "tools/output.hpp"
#include "tools/sim/sim.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <thread>

namespace tools {

namespace {

constexpr const char* kSimPaperExamples = R"(
Columns: the paper's number (B1 to B21) or the ring's, what it is, the value printed, the value
simulated, how much that is above it, and whether it is given (put into the model), fitted (a
constant was chosen by it), predicted, or not modelled (needs another network's curve).

Examples:
  rmem sim paper                        the table, in a second or two
  rmem sim paper --here                 and this library's times on this machine
  rmem sim paper --json                 for programs
  rmem sim paper --figure 1             one of the paper's figures 1 to 6 as a table
  rmem sim paper --figure 1 --data      the same as a data file

Exit codes: 0 done, 1 failed, 2 wrong command line.)";

struct PaperOptions {
    unsigned figure = 0;
    bool data = false;
    bool here = false;
    bool json = false;
};

double ours_us(void (*measure)(const GroupOptions&, const Plan&, Results&), unsigned ranks,
               std::size_t bytes) {
    GroupOptions group;
    group.ranks = ranks;
    Plan plan;
    plan.samples = 10;  // rounds are what is shown
    plan.rounds = 50;
    plan.batch = 200;
    plan.bytes = bytes;
    Results results;
    measure(group, plan, results);
    return median(results.all().at("ours")) / 1e3;
}

/// The comparable ones: with fewer processors than ranks, a barrier measures the scheduler.
void measure_here(std::vector<simulator::Row>& rows) {
    const unsigned processors = std::thread::hardware_concurrency();
    for (simulator::Row& row : rows) {
        if (row.id == "B1") row.here = ours_us(measure_pingpong, 2, 4);
        if (row.id == "B2") row.here = ours_us(measure_pingpong, 2, 0);
        for (const unsigned ranks : {3U, 4U}) {
            if (row.what == fmt::format("barrier by arrival words, {} nodes", ranks) &&
                processors >= ranks) {
                row.here = ours_us(measure_barrier, ranks, 0);
            }
        }
    }
}

nlohmann::json value_of(const std::optional<double>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json paper_json(const std::vector<simulator::Row>& rows) {
    nlohmann::json all = nlohmann::json::array();
    for (const simulator::Row& row : rows) {
        all.push_back({{"id", row.id},
                       {"what", row.what},
                       {"unit", row.unit},
                       {"paper", row.paper},
                       {"paper_value", value_of(row.paper_value)},
                       {"simulated", value_of(row.simulated)},
                       {"error_percent", value_of(row.error_percent())},
                       {"standing", simulator::name_of(row.standing)},
                       {"here", value_of(row.here)},
                       {"note", row.note}});
    }
    return all;
}

/// Three digits; whole numbers as such.
std::string number(const std::optional<double>& value) {
    if (!value) return "-";
    const bool whole = *value == static_cast<double>(static_cast<std::int64_t>(*value));
    return fmt::format("{:.{}f}", *value, whole ? 0 : *value < 10 ? 2 : 1);
}

std::string paper_table(const std::vector<simulator::Row>& rows, bool here) {
    std::vector<std::string> heading = {"",           "what",   "unit",    ">paper",
                                        ">simulated", ">error", "standing"};
    if (here) heading.push_back(">here");
    heading.push_back("note");
    Table table(heading);
    for (const simulator::Row& row : rows) {
        const auto error = row.error_percent();
        std::vector<std::string> cells = {row.id,
                                          row.what,
                                          row.unit,
                                          row.paper.empty() ? "-" : row.paper,
                                          number(row.simulated),
                                          error ? fmt::format("{:+.1f} %", *error) : "-",
                                          simulator::name_of(row.standing)};
        if (here) cells.push_back(row.here ? fmt::format("{:.3f}", *row.here) : "");
        cells.push_back(row.note);
        table.add(cells);
    }
    return table.text();
}

nlohmann::json paper_json(const simulator::Figure& figure) {
    return {{"title", figure.title}, {"columns", figure.columns}, {"rows_ps", figure.rows}};
}

std::string paper_table(const simulator::Figure& figure) {
    std::vector<std::string> heading;
    for (const std::string& column : figure.columns) heading.push_back(">" + column);
    Table table(heading);
    for (const auto& row : figure.rows) {
        std::vector<std::string> cells = {std::to_string(row.front())};
        for (std::size_t i = 1; i < row.size(); ++i) {
            cells.push_back(fmt::format("{:.3f}", static_cast<double>(row[i]) / 1e6));
        }
        table.add(cells);
    }
    return figure.title + ", in us\n" + table.text();
}

void show_figure(const PaperOptions& options) {
    const simulator::Figure figure = simulator::figure(options.figure);
    if (options.json) return show_json(paper_json(figure));
    show(options.data ? simulator::data_of(figure) : paper_table(figure));
}

void paper(const PaperOptions& options) {
    if (options.figure != 0) return show_figure(options);
    if (options.data) cli::refuse("--data", "goes with --figure");
    std::vector<simulator::Row> rows = simulator::paper_table();
    if (options.here) measure_here(rows);
    if (options.json) return show_json(paper_json(rows));
    show(paper_table(rows, options.here));
}

}  // namespace

void add_sim_paper(cli::App& sim) {
    auto options = std::make_shared<PaperOptions>();
    cli::App* command =
        sim.add_subcommand("paper", "Print the paper's numbers beside the simulation's");
    command->footer(kSimPaperExamples);
    command->add_option("--figure", options->figure, "Print one of the paper's figures instead")
        ->check(cli::range(1, 6));
    command->add_flag("--data", options->data, "Print the figure as a data file");
    command->add_flag("--here", options->here, "Measure on this machine, too (link direct)");
    command->add_flag("--json", options->json, "For programs");
    command->callback([options] { paper(*options); });
}

}  // namespace tools
