// SPDX-License-Identifier: Apache-2.0
// Tables of other programs from any text: one is read or refused; what was read comes back from the
// map that is written of it, can be packed, and makes a table once more. (Maps themselves are read
// by toml++, whose own assertions a fuzzer finds.)
#include "maps/check.hpp"
#include "maps/formats/format.hpp"
#include "maps/map_file.hpp"
#include "maps/map_text.hpp"
#include "maps/pack.hpp"
#include "rmem/base/check.hpp"
#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace {

void come_back(const maps::Map& map) {
    const std::string file = maps::file_of(map);
    RMEM_CHECK(maps::file_of(maps::map_of(file, "again")) == file);
    static_cast<void>(maps::check(map));
    maps::Map packed = map;
    try {
        maps::pack(packed);
        RMEM_CHECK(maps::has_errors(maps::check(map)) || !maps::has_errors(maps::check(packed)));
    } catch (const rmem::Error&) {  // NOLINT: it does not fit
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    rmem::check_from_now_on();
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const auto format = static_cast<maps::Format>(1 + data[0] % 5);
    std::optional<maps::Map> map;
    try {
        map = maps::import_map(format, text, "fuzz", 1);
    } catch (const rmem::Error&) {
        return 0;  // refused
    }
    come_back(*map);
    const maps::Exported exported = maps::export_map(format, *map, 1);
    const maps::Map again = maps::import_map(format, exported.text, "fuzz", 1);
    RMEM_CHECK(maps::export_map(format, again, 1).text == exported.text);
    return 0;
}
