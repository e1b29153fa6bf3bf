// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What `rmem top` shows of a ring at one instant: lines for a terminal, or JSON. It looks at nothing else.

#include <cstddef>
#include <string>
#include <vector>

#include "tools/heat_map.hpp"
#include "tools/json.hpp"
#include "tools/ring_view.hpp"

namespace tools {

enum class LineStyle { plain, heading, alarm };

struct Line {
    std::string text;
    LineStyle style = LineStyle::plain;
};

/// A bank's map, and whose it is. Null: none is shown.
struct ShownMap {
    const HeatMap* map = nullptr;
    unsigned node = 0;
};

/// No line is wider than `width` characters. At most `height` lines (0: any number): nodes make room first, then
/// what is last is left out; both are said.
std::vector<Line> frame_of(const RingView& view, ShownMap map, std::size_t width,
                           std::size_t height);

nlohmann::json frame_json(const RingView& view, ShownMap map);

/// "0", "12.3", "1.5k", "20M": what happens in a second, in five characters.
std::string rate_text(double per_second);

}  // namespace tools
