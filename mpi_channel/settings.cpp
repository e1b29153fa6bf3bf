// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/settings.hpp"

#include "rmem/config.hpp"
#include "rmem/environment_variable.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

namespace mpi_channel {

namespace {

constexpr const char* kTransports[] = {"channel", "billboard", "fm", "gamma", "dp"};

TransportKind parse_transport(const std::string& text) {
    const auto known = std::find(std::begin(kTransports), std::end(kTransports), text);
    if (known != std::end(kTransports))
        return static_cast<TransportKind>(known - std::begin(kTransports));
    throw rmem::Error(rmem::Errc::bad_environment,
                      fmt::format("RMEM_MPI_TRANSPORT: there is no transport '{}'; give one of {}",
                                  text, fmt::join(kTransports, ", ")));
}

void parse_get(const std::string& text, Settings& settings) {
    const auto parse = [](const std::string& size) {
        return rmem::parse_size("RMEM_MPI_GET", size);
    };
    const auto dash = text.find('-');
    settings.get_least = text == "off" ? kNoGets : parse(text.substr(0, dash));
    settings.get_most = dash == std::string::npos ? kNoGets : parse(text.substr(dash + 1));
}

void check_collectives(std::string text) {
    static const std::set<std::string> words = {"barrier",   "bcast",     "reduce",
                                                "allreduce", "allgather", "all"};
    for (std::size_t comma = 0; text != "off" && comma != std::string::npos;) {
        comma = text.find(',');
        const std::string word = text.substr(0, comma);
        if (words.count(word) == 0) {
            throw rmem::Error(
                rmem::Errc::bad_environment,
                fmt::format("RMEM_MPI_COLLECTIVES: there is no operation '{}'; give off, all, or a "
                            "list of barrier,bcast,reduce,allreduce,allgather",
                            word));
        }
        text.erase(0, comma == std::string::npos ? comma : comma + 1);
    }
}

}  // namespace

const char* name_of(TransportKind kind) noexcept {
    return kTransports[static_cast<std::size_t>(kind)];
}

Settings Settings::read() {
    Settings settings;
    if (const char* text = rmem::environment_setting("RMEM_MPI_TRANSPORT"))
        settings.transport = parse_transport(text);
    if (const char* text = rmem::environment_setting("RMEM_MPI_GET")) parse_get(text, settings);
    if (const char* text = rmem::environment_setting("RMEM_MPI_COLLECTIVES"))
        check_collectives(text);
    if (const char* text = rmem::environment_setting("RMEM_MPI_LOCK"))
        settings.locks = std::string(text) == "1";
    return settings;
}

}  // namespace mpi_channel
