// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A frame of `rmem top`, a ring at one instant: lines for a terminal, or JSON. It looks at nothing
/// else.
/// Invariants, executed: a ring that is there has nodes, in the order of their numbers; a frame is
/// no larger than its viewport.

#include "tools/json.hpp"
#include "tools/watch/heat_map.hpp"
#include "tools/watch/ring_view.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace tools {

enum class LineStyle { plain, heading, alarm, footer };

struct Line {
    std::string text;
    LineStyle style = LineStyle::plain;
};

/// A bank's map, and whose it is. Null: none is shown.
struct ShownMap {
    const HeatMap* map = nullptr;
    unsigned node = 0;
};

/// Through what a frame is looked at.
struct Viewport {
    std::size_t width = 200, height = 0;  ///< characters and lines; no height: any number of lines
    std::size_t scroll = 0;               ///< lines above the first one that is shown
    bool all_nodes = false;               ///< no node makes room for other lines
    bool has_keys = false;                ///< the last line says which there are
};

struct Frame {
    std::vector<Line> lines;
    std::size_t scroll = 0;  ///< the viewport's, but no further than there are lines
};

/// No line is wider than the viewport: an item that does not fit goes as a whole, with "…" in its
/// place. At most its height: nodes make room first, then lines are left out, which can be scrolled
/// to where there are keys; all of it is said.
Frame frame_of(const RingView& view, ShownMap map, const Viewport& port);

/// Of the map in a viewport, as many as HeatMap::look() may make.
std::size_t map_cells(const Viewport& port);

nlohmann::json frame_json(const RingView& view, ShownMap map);

/// "0", "12.3", "1.5k", "20M": a rate per second, in five characters.
std::string rate_text(double per_second);

}  // namespace tools
