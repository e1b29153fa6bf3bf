// SPDX-License-Identifier: Apache-2.0
#include "rmem/wire/timing_file.hpp"

#include "rmem/base/small_file.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

namespace rmem {

namespace {

Error refusal(const std::string& where, const std::string& sentence) {
    return {Errc::bad_profile, fmt::format("{}: {}", where, sentence)};
}

}  // namespace

TimingFile read_timing_file(const std::string& path) {
    const std::string text = user_file(path, "the timing profile", Errc::bad_profile);
    const auto where = [&](const toml::node& node) {
        return fmt::format("{}:{}", path, node.source().begin.line);
    };
    TimingFile file;
    try {
        const toml::table table = toml::parse(text, path);
        for (const auto& [key, value] : table) {
            std::string written;
            if (const auto* word = value.as_string()) {
                written = word->get();
            } else if (const auto* number = value.as_integer()) {
                written = fmt::format("{}", number->get());
            } else {
                throw refusal(where(value), fmt::format("'{}' is neither text nor a whole number; "
                                                        "write such as {} = \"450ns\"",
                                                        key.str(), key.str()));
            }
            if (key.str() == "base") {
                file.base = written;
                file.base_where = where(value);
            } else {
                file.options.push_back({std::string(key.str()), written, where(value)});
            }
        }
    } catch (const toml::parse_error& error) {
        throw refusal(fmt::format("{}:{}", path, error.source().begin.line),
                      fmt::format("{} (the format is TOML)", error.description()));
    }
    return file;
}

}  // namespace rmem
