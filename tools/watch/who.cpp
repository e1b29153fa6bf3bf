// SPDX-License-Identifier: Apache-2.0
// `rmem who`: who has written a variable, and who has written others' variables.

#include "rmem/base/clock.hpp"
#include "rmem/ring/owners.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"
#include "tools/watch/bank_view.hpp"
#include "tools/watch/named.hpp"
#include "tools/watch/writers.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace tools {

namespace {

constexpr const char* kWhoExamples = R"(
Examples:
  rmem who rig aircraft/altitude        its last writers, by the logs that ranks write anyway
  rmem who rig 0x100 --last 50          of a word without a name
  rmem who rig                          writes of others' variables: needs --owners of `rmem run`

Exit codes: 0 done, 1 failed, 2 wrong command line.)";

struct WhoOptions {
    std::string ring, place;
    std::uint64_t last = 10;
    bool json = false;
};

std::string clock_of(std::int64_t wall_ns) {
    const auto seconds = static_cast<std::time_t>(wall_ns / rmem::kNsPerSecond);
    return fmt::format("{:%F %H:%M:%S}.{:06}", fmt::localtime(seconds),
                       wall_ns % rmem::kNsPerSecond / 1000);
}

class Who {
public:
    explicit Who(const WhoOptions& options)
        : options_(options), ring_(rmem::Ring::observe(options.ring)) {
        if (options.place.empty()) {
            map_ = maps::map_of(*ring_);
            return;
        }
        GivenPlace given;
        given.place = options.place;
        meant_ = meant_by(given, *ring_);
        map_ = meant_.map != nullptr ? meant_.map : maps::map_of(*ring_);
        check_user_range(ring_->config(), meant_.begin(), meant_.end() - meant_.begin(), "");
    }

    void run() {
        if (map_ != nullptr) index_ = std::make_unique<maps::PlaceIndex>(*map_);
        if (!options_.place.empty()) add_last();
        add_foreign();
        options_.json ? show_json(json_) : show(text_);
    }

private:
    std::string path_at(std::uint64_t offset) const {
        const std::string path = index_ != nullptr ? index_->path_at(offset) : "";
        return path.empty() ? offset_text(offset) : printable(path);
    }
    /// What the bytes of a write that begins there mean, as far as they are one value.
    std::string value_at(std::uint64_t offset, std::span<const std::byte> bytes) const {
        const auto leaves = meant_.leaves.size() == 1 ? meant_.leaves
                            : map_ != nullptr ? maps::leaves_of(*map_, index_->path_at(offset), 2)
                                              : std::vector<maps::Leaf>();
        if (leaves.empty()) return "";
        const maps::Leaf& leaf = leaves.front();
        const bool has_all =
            leaf.offset >= offset && leaf.offset + leaf.bytes <= offset + bytes.size();
        return has_all ? meant_.text(leaf, bytes.subspan(leaf.offset - offset, leaf.bytes)) : "";
    }

    void add_last() {
        const auto writes = last_writes(*ring_, meant_.begin(), meant_.end(), options_.last);
        Table table({"written", "place", ">node", ">rank", "process", ">value"});
        json_["writes"] = nlohmann::json::array();
        const std::int64_t now = rmem::now_ns();
        for (const WriteOf& write : writes) {
            const auto age =
                static_cast<std::uint64_t>(std::max<std::int64_t>(now - write.written_ns, 0));
            const std::string value = value_at(write.offset, write.bytes);
            table.add({fmt::format("{}{} ago", write.is_later ? "under " : "", duration_text(age)),
                       path_at(write.offset), fmt::format("{}", write.node),
                       fmt::format("{}", write.rank), process_text(write.pid), value});
            json_["writes"].push_back({{"age_ns", age},
                                       {"is_at_most", write.is_later},
                                       {"offset", write.offset},
                                       {"node", write.node},
                                       {"rank", write.rank},
                                       {"pid", write.pid},
                                       {"value", value}});
        }
        if (!writes.empty()) {
            text_ += table.text();
        } else if (ring_->config().link == rmem::LinkKind::direct) {
            text_ +=
                "on link direct a store is the transfer, and nobody notes who stored; with "
                "--owners those are told who write another's\n";
        } else {
            text_ += fmt::format("the logs of ring '{}' have no write of it any more\n",
                                 ring_->config().name);
        }
    }

    void add_foreign() {
        if (rmem::Owners::mode_of(*ring_) == rmem::OwnerMode::off) {
            if (options_.place.empty()) {
                text_ += fmt::format(
                    "ring '{}' does not look after owners; start it with --map "
                    "and --owners report\n",
                    ring_->config().name);
            }
            return;
        }
        const rmem::Owners owners(*ring_, {rmem::Member::kGuest, 0});
        Table table(
            {"written", "variable", "owner", ">node", ">rank", "process", ">before", ">after", ""});
        json_["foreign"] = nlohmann::json::array();
        std::size_t shown = 0;
        for (const rmem::ForeignWrite& write : owners.last()) {
            const bool is_meant =
                options_.place.empty() ||
                (write.offset < meant_.end() && write.offset + write.bytes > meant_.begin());
            if (!is_meant) continue;
            ++shown;
            const auto value = [&](std::uint64_t eight) {
                std::vector<std::byte> bytes(std::min<std::uint64_t>(write.bytes, sizeof eight));
                std::memcpy(bytes.data(), &eight, bytes.size());
                const std::string text = value_at(write.offset, bytes);
                return text.empty() ? fmt::format("{:#x}", eight) : text;
            };
            const std::string program = printable(write.program.data());
            table.add({clock_of(write.time_ns), path_at(write.offset), rmem::text_of(write.owner),
                       fmt::format("{}", write.node), fmt::format("{}", write.rank),
                       fmt::format("{} ({})", write.pid, program), value(write.before),
                       value(write.after), write.refused != 0 ? "refused" : ""});
            json_["foreign"].push_back({{"time_ns", write.time_ns},
                                        {"offset", write.offset},
                                        {"name", path_at(write.offset)},
                                        {"owner", rmem::text_of(write.owner)},
                                        {"node", write.node},
                                        {"rank", write.rank},
                                        {"pid", write.pid},
                                        {"program", program},
                                        {"before", value(write.before)},
                                        {"after", value(write.after)},
                                        {"refused", write.refused != 0}});
        }
        json_["foreign_writes"] = owners.reports();
        if (shown != 0) text_ += table.text();
        text_ += fmt::format("{} writes of others' variables since the ring was made\n",
                             owners.reports());
    }

    const WhoOptions& options_;
    const std::shared_ptr<rmem::Ring> ring_;
    Meant meant_;
    maps::SharedMap map_;
    std::unique_ptr<maps::PlaceIndex> index_;
    std::string text_;
    nlohmann::json json_ = nlohmann::json::object();
};

}  // namespace

void add_who(cli::App& app) {
    auto options = std::make_shared<WhoOptions>();
    cli::App* command = app.add_subcommand("who", "Tell who has written a variable");
    add_ring(*command, options->ring)->required();
    command->add_option("OFFSET", options->place,
                        "Offset in bytes: 256, 0x100 or 4K; or a name of its map (default: those "
                        "that others have written)");
    command->add_option("--last", options->last, "At most as many writes")
        ->check(cli::at_least_one())
        ->capture_default_str();
    command->add_flag("--json", options->json, "Print JSON");
    command->footer(kWhoExamples);
    command->callback([options] { Who(*options).run(); });
}

}  // namespace tools
