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

std::size_t parse_get(const std::string& text) {
    return text == "off" ? kNoGets : rmem::parse_size("RMEM_MPI_GET", text);
}

}  // namespace

Settings Settings::read() {
    Settings settings;
    const char* transport = rmem::environment_variable("RMEM_MPI_TRANSPORT");
    if (transport != nullptr && *transport != '\0') settings.transport = parse_transport(transport);
    const char* get = rmem::environment_variable("RMEM_MPI_GET");
    if (get != nullptr && *get != '\0') settings.get_least = parse_get(get);
    return settings;
}

}  // namespace mpi_channel
