// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/settings.hpp"

#include "rmem/config.hpp"
#include "rmem/environment_variable.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>

#include <string>

namespace mpi_channel {

namespace {

TransportKind parse_transport(const std::string& text) {
    if (text == "channel") return TransportKind::channel;
    if (text == "billboard") return TransportKind::billboard;
    throw rmem::Error(
        rmem::Errc::bad_environment,
        fmt::format("RMEM_MPI_TRANSPORT: there is no transport '{}'; give channel or billboard",
                    text));
}

void parse_get(const std::string& text, Settings& settings) {
    const auto parse = [](const std::string& size) {
        return rmem::parse_size("RMEM_MPI_GET", size);
    };
    const auto dash = text.find('-');
    settings.get_least = text == "off" ? kNoGets : parse(text.substr(0, dash));
    settings.get_most = dash == std::string::npos ? kNoGets : parse(text.substr(dash + 1));
}

}  // namespace

Settings Settings::read() {
    Settings settings;
    const char* transport = rmem::environment_variable("RMEM_MPI_TRANSPORT");
    if (transport != nullptr && *transport != '\0') settings.transport = parse_transport(transport);
    const char* get = rmem::environment_variable("RMEM_MPI_GET");
    if (get != nullptr && *get != '\0') parse_get(get, settings);
    return settings;
}

}  // namespace mpi_channel
