// SPDX-License-Identifier: Apache-2.0
// Variables by their names, and by the header that `rmem map header` has written.
#include "rig.hpp"

#include <cstdio>
#include <exception>

int main() try {
    rmem::Node node = rmem::Node::open();
    rig::expect(node);
    const rmem::Variable<double> altitude(node, "aircraft/altitude");
    altitude = 1000.5;
    const rmem::Variable known(node, rig::aircraft_altitude);
    const rmem::Variable<rig::State> state(node, "aircraft/state");
    rig::State now = state;
    now.position[2] = 7;
    state = now;
    const rmem::Bits mode(node, rig::aircraft_status_mode);
    mode = 5;
    const bool is_right = known == 1000.5 && state.load().position[2] == 7 && mode == 5U;
    return is_right ? 0 : 1;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
