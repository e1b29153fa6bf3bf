// SPDX-License-Identifier: Apache-2.0
#include "tools/json.hpp"

template class nlohmann::basic_json<>;
