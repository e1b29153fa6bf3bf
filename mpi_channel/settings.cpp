// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/settings.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/config.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

namespace mpi_channel {

namespace {

struct TransportName {
    const char* name;
    TransportKind kind;
};
constexpr TransportName kTransports[] = {{"channel", TransportKind::channel},
                                         {"fm", TransportKind::fm}};
constexpr std::string_view kPrefix = "RMEM_MPI_";
constexpr const char* kNames[] = {"RMEM_MPI_TRANSPORT", "RMEM_MPI_GET", "RMEM_MPI_COLLECTIVES",
                                  "RMEM_MPI_LOCK"};

/// A setting that nobody reads would be one that the user believes in.
void check_names() {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        if (name.substr(0, kPrefix.size()) != kPrefix) continue;
        if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) continue;
        throw rmem::Error(
            rmem::Errc::bad_environment,
            fmt::format(
                "{} is set, and the MPI channel does not read it; it reads {}; correct or unset it",
                name, fmt::join(kNames, ", ")));
    }
}

/// Both MPIs tell a process so that MPI_Comm_spawn has started it.
void check_start() {
    const char* of_mpich = std::getenv("PMI_SPAWNED");
    if (std::getenv("OMPI_PARENT_PORT") == nullptr &&
        (of_mpich == nullptr || std::string_view(of_mpich) == "0"))
        return;
    throw rmem::Error(
        rmem::Errc::bad_environment,
        "this process was started by MPI_Comm_spawn, which is not supported here: a ring has all "
        "its ranks from the start; start all programs by the launcher, '-n 1 ./a : -n 3 ./b'");
}

bool parse_lock(const std::string& text) {
    if (text == "0" || text == "1") return text == "1";
    throw rmem::Error(rmem::Errc::bad_environment,
                      fmt::format("RMEM_MPI_LOCK is '{}'; give 0 or 1", text));
}

TransportKind parse_transport(const std::string& text) {
    std::string names;
    for (const TransportName& transport : kTransports) {
        if (text == transport.name) return transport.kind;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", transport.name);
    }
    throw rmem::Error(
        rmem::Errc::bad_environment,
        fmt::format("RMEM_MPI_TRANSPORT is '{}', which is no transport; give one of {}", text,
                    names));
}

void parse_get(const std::string& text, Settings& settings) {
    const auto wrong = [&](const std::string& why) {
        return rmem::Error(rmem::Errc::bad_size,
                           fmt::format("RMEM_MPI_GET is '{}'{}; give off, the least bytes of a "
                                       "message such as 64K, or the least and the most such as "
                                       "16K-2M",
                                       text, why));
    };
    const auto parse = [&](const std::string& size) {
        try {
            return rmem::parse_size("RMEM_MPI_GET", size);
        } catch (const rmem::Error&) {
            throw wrong("");
        }
    };
    const auto dash = text.find('-');
    settings.get_least = text == "off" ? kNoGets : parse(text.substr(0, dash));
    settings.get_most = dash == std::string::npos ? kNoGets : parse(text.substr(dash + 1));
    if (settings.get_most < settings.get_least)
        throw wrong(", whose maximum is less than its minimum");
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
                fmt::format(
                    "RMEM_MPI_COLLECTIVES has '{}', which is no operation; give off, all, or a "
                    "list of barrier,bcast,reduce,allreduce,allgather",
                    word));
        }
        text.erase(0, comma == std::string::npos ? comma : comma + 1);
    }
}

}  // namespace

const char* name_of(TransportKind kind) noexcept {
    for (const TransportName& transport : kTransports) {
        if (transport.kind == kind) return transport.name;
    }
    return "of another version";
}

Settings Settings::read() {
    Settings settings;
    check_names();
    check_start();
    if (const char* text = rmem::environment_setting("RMEM_MPI_TRANSPORT"))
        settings.transport = parse_transport(text);
    if (const char* text = rmem::environment_setting("RMEM_MPI_GET")) {
        parse_get(text, settings);
    } else if (settings.transport != TransportKind::channel) {
        settings.get_least = kGetLeast;
        settings.get_most = kGetMost;
    }
    if (const char* text = rmem::environment_setting("RMEM_MPI_COLLECTIVES"))
        check_collectives(text);
    if (const char* text = rmem::environment_setting("RMEM_MPI_LOCK"))
        settings.locks = parse_lock(text);
    return settings;
}

}  // namespace mpi_channel
