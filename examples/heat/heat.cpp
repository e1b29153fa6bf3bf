// SPDX-License-Identifier: Apache-2.0
/// The heat equation on a plate, its rows divided among the ranks. See README.md.

#include "company.hpp"
#include "plate.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Options {
    heat::Size plate{200, 300};
    int steps = 2000;
    int residual_every = 50;
    double tolerance = 1e-3;
    bool serial = false;
    bool check = false;
    std::string picture;
};

struct Solution {
    int steps = 0;
    double residual = 0.0;
    std::vector<double> plate;  ///< at rank 0
};

/// Steps until the plate changes by less than the tolerance, which all ranks find at the same step.
Solution solve(const Options& options, heat::Band& band, heat::Company& company) {
    Solution solution;
    while (solution.steps < options.steps) {
        company.exchange_halo(band);
        band.step();
        ++solution.steps;
        if (solution.steps % options.residual_every != 0) continue;
        solution.residual = std::sqrt(company.sum(band.changes()));
        if (solution.residual < options.tolerance) break;
    }
    solution.plate = company.gather(band);
    return solution;
}

Solution solve_alone(const Options& options) {
    heat::Band whole(options.plate, 0, options.plate.rows);
    heat::Alone alone;
    return solve(options, whole, alone);
}

bool same_bits(const Solution& a, const Solution& b) {
    return a.steps == b.steps && std::memcmp(&a.residual, &b.residual, sizeof a.residual) == 0 &&
           a.plate.size() == b.plate.size() &&
           std::memcmp(a.plate.data(), b.plate.data(), a.plate.size() * sizeof(double)) == 0;
}

/// FNV-1a over the bits of all temperatures: equal plates have equal prints.
std::uint64_t fingerprint(const std::vector<double>& plate) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const double degrees : plate) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &degrees, sizeof bits);
        for (int byte = 0; byte < 8; ++byte) {
            hash = (hash ^ (bits & 0xff)) * 0x100000001b3U;
            bits >>= 8;
        }
    }
    return hash;
}

/// A grey picture (PGM): white is hot.
void draw(const std::string& file, heat::Size size, const std::vector<double>& plate) {
    std::string pixels(plate.size(), '\0');
    std::transform(plate.begin(), plate.end(), pixels.begin(), [](double degrees) {
        const double share = std::clamp(degrees / heat::kHotDegrees, 0.0, 1.0);
        return static_cast<char>(static_cast<unsigned char>(std::lround(255.0 * share)));
    });
    std::ofstream out(file, std::ios::binary);
    out << fmt::format("P5\n{} {}\n255\n", size.columns, size.rows) << pixels;
    if (!out.flush()) throw std::runtime_error(fmt::format("cannot write the picture {}", file));
}

void report(const Options& options, const std::string& who, const Solution& solution) {
    fmt::print("{}: {} x {} points, {} steps, residual {:.6g}, fingerprint {:016x}\n", who,
               options.plate.rows, options.plate.columns, solution.steps, solution.residual,
               fingerprint(solution.plate));
    if (!options.picture.empty()) draw(options.picture, options.plate, solution.plate);
}

int run_alone(const Options& options) {
    report(options, "serial", solve_alone(options));
    return 0;
}

int run_in_company(const Options& options) {
    heat::Ranks ranks(options.plate);
    heat::Band band(options.plate, ranks.first_row(ranks.rank()), ranks.row_count(ranks.rank()));
    const Solution solution = solve(options, band, ranks);
    if (ranks.rank() != 0) return 0;

    report(options, fmt::format("{} rank{}", ranks.ranks(), ranks.ranks() == 1 ? "" : "s"),
           solution);
    if (!options.check) return 0;
    const bool same = same_bits(solution, solve_alone(options));
    fmt::print("the serial result is {}\n", same ? "the same to the last bit" : "DIFFERENT");
    return same ? 0 : 1;
}

void add_options(CLI::App& app, Options& options) {
    app.add_option("--rows", options.plate.rows, "Rows of the plate")
        ->check(CLI::Range(3, 100'000))
        ->capture_default_str();
    app.add_option("--columns", options.plate.columns, "Columns of the plate")
        ->check(CLI::Range(3, 100'000))
        ->capture_default_str();
    app.add_option("--steps", options.steps, "Steps at most")
        ->check(CLI::Range(0, 100'000'000))
        ->capture_default_str();
    app.add_option("--residual-every", options.residual_every, "Steps between residuals")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    app.add_option("--tolerance", options.tolerance, "Stop when the residual is below it")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_flag("--serial", options.serial, "One process, without any messages");
    app.add_flag("--check", options.check, "Compare with the serial result, bit by bit");
    app.add_option("--picture", options.picture, "Write the last state to this file, as PGM");
    app.footer("Example: rmem run -n 4 -- heat --check --picture plate.pgm");
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Heat spreads over a plate whose rows are divided among the ranks.", "heat");
    add_options(app, options);
    CLI11_PARSE(app, argc, argv);
    try {
        return options.serial ? run_alone(options) : run_in_company(options);
    } catch (const std::exception& error) {
        fmt::print(stderr, "heat: {}\n", error.what());
        return 1;
    }
}
