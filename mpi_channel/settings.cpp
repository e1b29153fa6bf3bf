// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/settings.hpp"

#include "rmem/base/setting_list.hpp"
#include "rmem/error.hpp"
#include "rmem/ring/config.hpp"

#include <cstdlib>
#include <set>
#include <sstream>
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
constexpr const char* kGetWanted =
    "off, the least bytes of a message such as 64K, or the least and the most such as 16K-2M";

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

TransportKind parse_transport(const std::string& what, const std::string& text) {
    for (const TransportName& transport : kTransports) {
        if (text == transport.name) return transport.kind;
    }
    throw rmem::malformed_setting(what, text, "channel or fm");
}

void parse_get(const std::string& what, const std::string& text, Settings& settings) {
    const auto parse = [&](const std::string& size) {
        try {
            return rmem::parse_size(what, size);
        } catch (const rmem::Error&) {
            throw rmem::malformed_setting(what, text, kGetWanted);
        }
    };
    const auto dash = text.find('-');
    settings.get_least = text == "off" ? kNoGets : parse(text.substr(0, dash));
    settings.get_most = dash == std::string::npos ? kNoGets : parse(text.substr(dash + 1));
    if (settings.get_most < settings.get_least)
        throw rmem::malformed_setting(what, text, kGetWanted);
}

void check_collectives(const std::string& what, const std::string& text) {
    static const std::set<std::string> words = {"barrier",   "bcast",     "reduce",
                                                "allreduce", "allgather", "all"};
    if (text == "off") return;
    std::istringstream list(text + '+');  // a last one that is empty counts
    for (std::string word; std::getline(list, word, '+');) {
        if (!words.contains(word))
            throw rmem::malformed_setting(
                what, text, "off, all, or some of barrier+bcast+reduce+allreduce+allgather");
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
    rmem::refuse_misspelt_settings();
    check_start();
    using Text = const std::string&;
    bool says_get = false;
    rmem::read_setting_list(
        "RMEM_MPI",
        {{"transport",
          [&](Text what, Text text) { settings.transport = parse_transport(what, text); }},
         {"get", [&](Text what, Text text) { parse_get(what, text, settings), says_get = true; }},
         {"collectives", check_collectives}});
    if (!says_get && settings.transport != TransportKind::channel) {
        settings.get_least = kGetLeast;
        settings.get_most = kGetMost;
    }
    return settings;
}

}  // namespace mpi_channel
