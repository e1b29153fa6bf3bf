// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/settings.hpp"

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

}  // namespace

Settings Settings::read() {
    Settings settings;
    const char* transport = rmem::environment_variable("RMEM_MPI_TRANSPORT");
    if (transport != nullptr && *transport != '\0') settings.transport = parse_transport(transport);
    return settings;
}

}  // namespace mpi_channel
