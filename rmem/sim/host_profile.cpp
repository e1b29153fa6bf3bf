// SPDX-License-Identifier: Apache-2.0
#include "rmem/sim/host_profile.hpp"

#include "rmem/ring/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace rmem::sim {

namespace {

const std::array<HostProfile, 2>& profiles() {
    static const std::array<HostProfile, 2> all = {
        HostProfile{},
        // store: a posted write of one word on a 33 MHz PCI bus, 5 clocks (given by the bus).
        // load, call: fitted to the paper's one-way latencies of 0 and 4 bytes, by
        // simulator/paper/calibration.hpp.
        HostProfile{"pentium-ii", 150, 667, 490}};
    return all;
}

void set_option(HostProfile& host, const std::string& option) {
    const std::size_t equals = option.find('=');
    const std::string name = option.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
    const std::int64_t ns = parse_duration_ns("host profile option " + name, value);
    if (name == "store") {
        host.store_ns = ns;
    } else if (name == "load") {
        host.load_ns = std::max<std::int64_t>(ns, 1);
    } else if (name == "call") {
        host.call_ns = std::max<std::int64_t>(ns, 1);
    } else {
        throw Error(Errc::bad_profile,
                    fmt::format("host profile option '{}' does not exist; give store=, load= or "
                                "call= with a time",
                                option));
    }
}

}  // namespace

std::vector<std::string> host_profile_names() {
    std::vector<std::string> names;
    for (const HostProfile& host : profiles()) names.push_back(host.name);
    return names;
}

HostProfile parse_host(std::string_view spec) {
    const std::string_view name = spec.substr(0, spec.find(','));
    const auto it = std::find_if(profiles().begin(), profiles().end(),
                                 [&](const HostProfile& host) { return host.name == name; });
    if (it == profiles().end()) {
        throw Error(Errc::bad_profile,
                    fmt::format("host profile '{}' does not exist; give one of {}", name,
                                fmt::join(host_profile_names(), ", ")));
    }
    HostProfile host = *it;
    for (std::size_t at = name.size(); at < spec.size();) {
        const std::size_t end = std::min(spec.find(',', at + 1), spec.size());
        set_option(host, std::string(spec.substr(at + 1, end - at - 1)));
        at = end;
    }
    return host;
}

}  // namespace rmem::sim
