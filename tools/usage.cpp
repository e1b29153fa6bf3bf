// SPDX-License-Identifier: Apache-2.0
#include "tools/usage.hpp"

#include "rmem/ring/config.hpp"

namespace tools {

namespace {

template <class T>
T read(T (*parse)(const std::string&, const std::string&), const std::string& option,
       const std::string& text) {
    try {
        return parse(option, text);
    } catch (const rmem::Error& error) {
        throw UsageError(error.sentence());
    }
}

}  // namespace

std::int64_t duration_option(const std::string& option, const std::string& text) {
    return read(rmem::parse_duration_ns, option, text);
}

std::size_t size_option(const std::string& option, const std::string& text) {
    return read(rmem::parse_size, option, text);
}

}  // namespace tools
