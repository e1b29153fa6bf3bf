// SPDX-License-Identifier: Apache-2.0
#pragma once

/// `rmem sim scale --link udp | fabric`: what a write costs in rings of 8 to 4096 nodes.
///
/// Thread safety: one thread.

#include "simulator/sizing/points.hpp"
#include "tools/options.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace tools {

class ScaleLinks {
public:
    /// The options that these links alone have.
    void add_options(cli::App& command);
    /// Refuses them on another link.
    void refuse_options() const;

    /// As a table, a data file, or for programs.
    enum class Form : unsigned char { table, data, json };
    void run(bool is_fabric, unsigned most_nodes, Form form) const;

private:
    /// A cost that was given, in place of the link's.
    struct Given {
        const char* name;
        std::int64_t simulator::sizing::Costs::*cost;
        unsigned value = 0;
        cli::Option* option = nullptr;
    };

    simulator::sizing::Task task(bool is_fabric, unsigned most_nodes) const;

    unsigned write_bytes_ = 4;
    unsigned rack_nodes_ = 32;
    unsigned most_run_ = simulator::sizing::kMostRun;
    double loss_percent_ = 0.1;
    std::vector<Given> given_;
    std::vector<std::pair<const char*, cli::Option*>> options_;
};

}  // namespace tools
