// SPDX-License-Identifier: Apache-2.0
#include "tools/json.hpp"

#include "tools/output.hpp"

template class nlohmann::basic_json<>;

namespace tools {

void show_json(const nlohmann::json& value) {
    show(value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void show_json_line(const nlohmann::json& value) {
    show(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace tools
