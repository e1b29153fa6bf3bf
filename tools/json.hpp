// SPDX-License-Identifier: Apache-2.0
#pragma once

/// JSON, compiled once (json.cpp) and not in every file that prints some.

#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;
