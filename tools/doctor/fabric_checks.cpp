// SPDX-License-Identifier: Apache-2.0
// What libfabric offers on this host, and which of it can carry a ring.
#include "rmem/base/clock.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/link/fabric/make_endpoint.hpp"
#include "rmem/ring/config.hpp"
#include "tools/doctor/checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tools {

namespace {

namespace fabric = rmem::fabric;

constexpr std::int64_t kMeetNs = 3'000'000'000;
constexpr unsigned kRounds = 500;
constexpr std::size_t kBytes = 128;  // about a short write's datagram

/// A directory for two endpoints to meet in.
class MeetingPlace {
public:
    MeetingPlace() {
        std::string name = (std::filesystem::temp_directory_path() / "rmem-doctor-XXXXXX").string();
        if (::mkdtemp(name.data()) != nullptr) path_ = name;
    }
    ~MeetingPlace() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    MeetingPlace(const MeetingPlace&) = delete;
    MeetingPlace& operator=(const MeetingPlace&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

using Pair = std::array<std::unique_ptr<rmem::udp::Carrier>, 2>;

/// Sends, and sends again after a while, until the other one has it.
bool bring(rmem::udp::Carrier& from, rmem::udp::Carrier& to, std::int64_t again_ns) {
    const std::array<std::byte, kBytes> datagram{};
    const std::int64_t begin = rmem::now_ns();
    for (std::int64_t now = begin; now - begin < kMeetNs;) {
        from.send(datagram);
        for (const std::int64_t sent = now; now - sent < again_ns; now = rmem::now_ns()) {
            if (!to.receive().empty()) return true;
            from.receive();
        }
    }
    return false;
}

/// One way between two endpoints of this host, median; none: they did not meet.
std::optional<std::int64_t> latency_of(const std::string& provider, const std::string& interface) {
    const MeetingPlace place;
    fabric::EndpointSettings settings;
    settings.fabric.provider = provider;
    settings.fabric.directory = place.path();
    settings.fabric.interface = interface;
    settings.ring = "doctor";
    settings.nodes = 2;
    Pair pair;
    for (unsigned node = 0; node < pair.size(); ++node) {
        settings.node = node;
        pair[node] = fabric::make_endpoint(settings);
    }
    if (!bring(*pair[0], *pair[1], 1'000'000) || !bring(*pair[1], *pair[0], 1'000'000))
        return std::nullopt;
    std::vector<std::int64_t> times;
    for (unsigned i = 0; i < kRounds; ++i) {
        const std::int64_t begin = rmem::now_ns();
        if (!bring(*pair[i % 2], *pair[1 - i % 2], kMeetNs)) return std::nullopt;
        times.push_back(rmem::now_ns() - begin);
    }
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    return times[kRounds / 2];
}

struct Network {
    std::vector<std::string> places;
    std::string lack;
};

Finding finding_of(const std::string& provider, const Network& network) {
    const std::string where = fmt::format("on {}", fmt::join(network.places, ", "));
    if (!network.lack.empty()) {
        return warn(provider,
                    fmt::format("{}: cannot carry a ring, it has {}", where, network.lack),
                    "give another one in RMEM_PROVIDER");
    }
    try {
        const auto latency = latency_of(provider, rmem::environment_text("RMEM_INTERFACE"));
        if (latency) {
            return ok(provider,
                      fmt::format("{}: keeps each sender's order (FI_ORDER_SAS); {:.1f} us one way "
                                  "between two endpoints of this host",
                                  where, static_cast<double>(*latency) / 1e3));
        }
        return warn(provider,
                    fmt::format("{}: two endpoints of this host do not reach each other", where),
                    "a firewall may be between them; RMEM_INTERFACE chooses the interface");
    } catch (const rmem::Error& error) {
        return warn(provider, fmt::format("{}: {}", where, error.sentence()), "");
    }
}

Finding settings_finding(unsigned nodes) {
    try {
        return ok("RMEM_GROUP", fabric::Settings::read(nodes).text());
    } catch (const rmem::Error& error) {
        return fail("RMEM_GROUP", error.sentence());
    }
}

}  // namespace

std::vector<Finding> check_fabric() {
    std::vector<Finding> findings;
    const std::string wanted = rmem::environment_text("RMEM_PROVIDER");
    std::vector<fabric::Offer> offers;
    try {
        offers = fabric::offers(wanted);
    } catch (const rmem::Error& error) {
        return {fail("libfabric", error.sentence())};
    }
    std::vector<std::string> order;
    std::map<std::string, Network> networks;
    for (const fabric::Offer& offer : offers) {
        auto [it, is_new] = networks.try_emplace(offer.provider);
        if (is_new) order.push_back(offer.provider);
        const std::string place = offer.domain == offer.fabric
                                      ? offer.domain
                                      : fmt::format("{} ({})", offer.fabric, offer.domain);
        it->second.places.push_back(place);
        it->second.lack = offer.lack;
    }
    for (const std::string& provider : order)
        findings.push_back(finding_of(provider, networks.at(provider)));
    const bool has_any = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.verdict == Verdict::ok;
    });
    if (!has_any) {
        findings.push_back(
            fail("libfabric",
                 wanted.empty() ? std::string("no provider here can carry a ring")
                                : fmt::format("RMEM_PROVIDER is '{}': it cannot carry a ring here, "
                                              "or has no device",
                                              wanted),
                 "`fi_info -l` lists what libfabric was built with"));
    }
    const rmem::Environment environment = rmem::Environment::read();
    if (environment.link == rmem::LinkKind::fabric)
        findings.push_back(settings_finding(environment.nodes.value_or(1)));
    return findings;
}

}  // namespace tools
