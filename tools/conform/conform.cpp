// SPDX-License-Identifier: Apache-2.0
// `rmem conform`: does a card, or a link, keep the rules of a reflective memory?

#include "cards/common/unit.hpp"
#include "rmem/base/quantity.hpp"
#include "rmem/wire/timing.hpp"
#include "tools/commands.hpp"
#include "tools/conform/report.hpp"
#include "tools/conform/rmem_card.hpp"
#include "tools/conform/vendor_cards.hpp"
#include "tools/json.hpp"
#include "tools/measure/rank_group.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tools {

namespace {

constexpr const char* kConformExamples = R"(
Examples:
  rmem conform                                     three nodes of a ring of its own, link direct
  rmem conform --link ring --timing gt200 --nodes 4
  rmem conform --link udp --faults drop:share=1% --json
  rmem conform --list                              the rules
  rmem conform --member 0 --members 2 --unit 0     one member, on each of two hosts; the other one:
  rmem conform --member 1 --members 2 --unit 0

Exit codes: 0 no rule is broken, 1 one is, or it could not be tried, 2 wrong command line.)";

struct ConformOptions {
    std::string link = "direct", timing, faults;
    unsigned nodes = 3;
    std::optional<unsigned> member, members, unit;
    std::map<const conform::VendorCard*, std::optional<std::string>> cards;  ///< one at most
    std::string at = "0", bytes, floor, patience = "30s";
    std::string reading = "call";
    double deadline_s = 300;
    conform::Plan plan;
    bool list = false, json = false;
};

// ---- One member

conform::Reading reading_of(const ConformOptions& options) {
    return options.reading == "pointer" ? conform::Reading::by_pointer : conform::Reading::by_call;
}

/// Whether it has found a break; shows the report if wanted.
bool be_member(conform::Card& card, const ConformOptions& options, const conform::Plan& plan,
               bool shows, const std::function<void()>& begun = {}) {
    const conform::Report report{card.name(), plan, needed_bytes(card, plan.members),
                                 run_litmuses(card, plan, begun)};
    if (shows && options.json) show_json(report.json());
    if (shows && !options.json) show(report.text());
    return report.is_broken();
}

rmem_node* node_by(const rmem_options& options, int& code) {
    rmem_node* node = nullptr;
    code = rmem_open_with(&node, &options);
    return node;
}

std::unique_ptr<conform::Card> chosen_card(const ConformOptions& options) {
    for (const auto& [card, which] : options.cards)
        if (which) return card->open(*which, reading_of(options));
    const auto open = [unit = options.unit](int& code) {
        if (unit) return cards::open_unit(*unit, code).release();
        rmem_options own = RMEM_OPTIONS;
        own.await = RMEM_AWAIT_NONE;
        return node_by(own, code);
    };
    return conform::card_of(open, reading_of(options));
}

bool be_one_of_several(const ConformOptions& options) {
    conform::Plan plan = options.plan;
    plan.member = *options.member;
    plan.members = *options.members;
    const auto card = chosen_card(options);
    return be_member(*card, options, plan, true);
}

// ---- A ring of its own

/// What the profile says of its cards.
void take_timing(const ConformOptions& options, conform::Plan& plan) {
    if (options.timing.empty()) return;
    const rmem::TimingProfile timing = rmem::parse_timing(options.timing);
    plan.whole_words = plan.whole_words || timing.whole_words != 0;
    // A wire needs that long at least.
    if (plan.floor_ns == 0 && options.link == "ring")
        plan.floor_ns = static_cast<std::int64_t>((timing.insertion_ps + timing.cable_ps) / 1000);
}

bool run_own_ring(const ConformOptions& options) {
    conform::Plan plan = options.plan;
    plan.members = options.nodes;
    take_timing(options, plan);

    GroupOptions group;
    group.ranks = options.nodes;
    group.link = options.link;
    group.timing = options.timing;
    group.deadline_s = options.deadline_s;
    const Common<bool> is_broken;
    // The last member comes late: when the first one has begun.
    std::array<int, 2> begun{};
    if (::pipe(begun.data()) != 0) throw rmem::Error(rmem::Errc::system, "no pipe to be had");

    const std::string faults = "RMEM_FAULTS=" + options.faults;
    const std::array<const char*, 2> settings{options.faults.empty() ? nullptr : faults.c_str(),
                                              nullptr};
    run_processes(group, options.nodes, [&](unsigned member, const std::string&) {
        char sign = 0;
        if (member != 0 && member + 1 == options.nodes && ::read(begun[0], &sign, 1) != 1)
            throw rmem::Error(rmem::Errc::system, "member 0 cannot be heard");
        rmem_options one = RMEM_OPTIONS;
        one.rank = static_cast<int>(member);
        one.settings = settings.data();
        const auto open = [&, opened = false](int& code) mutable {
            if (std::exchange(opened, true)) one.await = RMEM_AWAIT_NONE;
            return node_by(one, code);
        };
        const auto card = conform::card_of(open, reading_of(options));
        conform::Plan own = plan;
        own.member = member;
        const bool found = be_member(*card, options, own, member == 0, [&] {
            if (member == 0 && ::write(begun[1], &sign, 1) != 1)
                throw rmem::Error(rmem::Errc::system, "the last member cannot be told");
        });
        if (member == 0) *is_broken = found;
    });
    for (const int end : begun) ::close(end);
    return *is_broken;
}

// ---- The command

void list_rules(bool json) {
    Table table({"rule", "what it says"});
    nlohmann::json all = nlohmann::json::array();
    for (const conform::Litmus& litmus : conform::all_litmuses()) {
        table.add({litmus.name, litmus.rule});
        all.push_back({{"name", litmus.name}, {"rule", litmus.rule}});
    }
    json ? show_json(all) : show(table.text());
}

void check(const ConformOptions& options) {
    if (options.member && *options.member >= *options.members)
        cli::refuse("--member", "members are numbered from 0; give one below --members");
    for (const std::string& name : options.plan.only) {
        const auto all = conform::all_litmuses();
        if (std::none_of(all.begin(), all.end(),
                         [&](const conform::Litmus& one) { return one.name == name; })) {
            cli::refuse("--only",
                        fmt::format("there is no rule '{}'; `rmem conform --list` has them", name));
        }
    }
}

void conform_to_rules(ConformOptions options) {
    check(options);
    if (options.list) {
        list_rules(options.json);
        return;
    }
    options.plan.at = size_option("--at", options.at);
    if (!options.bytes.empty()) options.plan.bytes = size_option("--bytes", options.bytes);
    if (!options.floor.empty()) options.plan.floor_ns = duration_option("--floor", options.floor);
    options.plan.patience_ns = duration_option("--patience", options.patience);
    const bool is_broken = options.member ? be_one_of_several(options) : run_own_ring(options);
    if (is_broken) end_with(kExitFailed);
}

}  // namespace

void add_conform(cli::App& app) {
    auto options = std::make_shared<ConformOptions>();
    ConformOptions& o = *options;
    cli::App* command = app.add_subcommand(kConform.word, kConform.description);
    command->footer(kConformExamples);

    cli::Option* link = command->add_option("--link", o.link, "Its link")
                            ->check(cli::is_member({"direct", "ring", "udp", "fabric"}))
                            ->capture_default_str();
    cli::Option* timing =
        command->add_option("--timing", o.timing, "Timing profile (not link direct)");
    cli::Option* nodes = command->add_option("--nodes", o.nodes, "Nodes, a member at each")
                             ->check(cli::range(2U, conform::kMaxMembers))
                             ->capture_default_str();
    cli::Option* faults =
        command->add_option("--faults", o.faults, "Faults to inject; rmem(7) has them all");
    cli::Option* deadline =
        command->add_option("--deadline", o.deadline_s, "Seconds until a run is given up")
            ->capture_default_str();
    cli::Option* member = command->add_option("--member", o.member, "This one's number, from 0")
                              ->check(cli::range(0U, conform::kMaxMembers - 1));
    cli::Option* members = command->add_option("--members", o.members, "How many there are")
                               ->check(cli::range(2U, conform::kMaxMembers));
    cli::Option* unit =
        command->add_option("--unit", o.unit, "The card of this host; else as RMEM_RING, … say");
    for (cli::Option* option : {link, timing, nodes, faults, deadline}) {
        option->group("A ring of its own");
        member->excludes(option);
    }
    for (cli::Option* option : {member, members, unit}) option->group("A ring that is there");
    member->needs(members);
    members->needs(member);
    unit->needs(member);
    std::vector<cli::Option*> cards{unit};
    for (const conform::VendorCard& card : conform::vendor_cards()) {
        cli::Option* option = command->add_option(card.option, o.cards[&card], card.meaning)
                                  ->group("A ring that is there")
                                  ->needs(member);
        for (cli::Option* other : cards) option->excludes(other);
        cards.push_back(option);
    }

    command->add_option("--at", o.at, "Where in the memory; alike at all members")
        ->capture_default_str();
    command->add_option("--bytes", o.bytes, "Of the memory that may be used; else what is needed");
    command->add_option("--rounds", o.plan.rounds, "Of each rule; alike at all members")
        ->check(cli::range(8U, conform::kMaxRounds))
        ->capture_default_str();
    command->add_option("--only", o.plan.only, "These rules; alike at all members")->delimiter(',');
    command->add_option("--reading", o.reading, "How a member reads: by call or by pointer")
        ->check(cli::is_member({"call", "pointer"}))
        ->capture_default_str();
    command->add_option("--floor", o.floor, "The least time of a word, such as 350ns");
    command->add_flag("--whole-words", o.plan.whole_words,
                      "The cards send a byte's whole word, as SCRAMNet+'s do");
    command->add_option("--patience", o.patience, "How long to wait for a member, or a word")
        ->capture_default_str();
    command->add_flag("--list", o.list, "List the rules, and end");
    command->add_flag("--json", o.json, "Print JSON");
    command->callback([options] { conform_to_rules(*options); });
}

}  // namespace tools
