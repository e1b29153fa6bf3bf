// SPDX-License-Identifier: Apache-2.0
#include "ports/gamma/settings.hpp"

#include "ports/gamma/frame.hpp"
#include "rmem/base/setting_list.hpp"

#include <string>

namespace ports::gamma {

Settings Settings::read() {
    Settings settings;
    if (const auto timeout = rmem::Environment::read().join_timeout_ns)
        settings.join_timeout_ns = *timeout;
    using Text = const std::string&;
    rmem::read_setting_list(
        "RMEM_GAMMA", {{"pid",
                        [&](Text what, Text text) {
                            settings.par_pid = rmem::parse_unsigned(what, text, kMaxGroups - 1);
                        }},
                       {"patience",
                        [&](Text what, Text text) {
                            settings.patience_ns = rmem::parse_duration_ns(what, text);
                        }},
                       {"progress", [&](Text what, Text text) {
                            settings.has_progress_thread = text == "on";
                            if (text != "on" && text != "off")
                                throw rmem::malformed_setting(what, text, "on or off");
                        }}});
    return settings;
}

}  // namespace ports::gamma
