// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Recorded writes for people and for programs.

#include "rmem/recording/recording_reader.hpp"
#include "tools/json.hpp"

#include <string>

namespace tools {

/// One line: time since the start, writer, place, words in hexadecimal (the first ones of many).
std::string write_text(const rmem::RecordedWrite& write, const rmem::RecordingInfo& info);
/// The same with all words, as numbers.
nlohmann::json write_json(const rmem::RecordedWrite& write, const rmem::RecordingInfo& info);

/// A summary of a whole recording; goes through all that the reader has left.
nlohmann::json summary_json(rmem::RecordingReader& reader);
std::string summary_text(const nlohmann::json& summary);

}  // namespace tools
