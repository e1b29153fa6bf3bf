/* SPDX-License-Identifier: Apache-2.0 */
/* Variables by their names, and by the header that `rmem map header` has written. */
#include "rig.h"

#include <stdio.h>

static int failed(const char* what) {
    fprintf(stderr, "%s: %s\n", what, rmem_last_error());
    return 1;
}

int main(void) {
    rmem_node* node;
    rmem_f64 altitude;
    struct rig_State state = {0};
    if (rmem_open(&node) < 0) return failed("opening");
    if (rig_expect(node) < 0) return failed("the map");
    if (rmem_find_f64(node, "aircraft/altitude", &altitude) < 0) return failed("altitude");
    if (rmem_store_f64(altitude, 1000.5) < 0) return failed("storing");
    if (rmem_load_f64(rig_aircraft_altitude(node)) != 1000.5) return failed("loading");
    state.position[2] = 7;
    if (rmem_store_block(rig_aircraft_state(node), &state) < 0) return failed("storing a block");
    state.position[2] = 0;
    if (rmem_load_block(rig_aircraft_state(node), &state) < 0 || state.position[2] != 7)
        return failed("loading a block");
    if (rmem_store_bits(rig_aircraft_status_mode(node), 5) < 0) return failed("storing bits");
    if (rmem_load_bits(rig_aircraft_status_mode(node)) != 5) return failed("loading bits");
    return rmem_close(node);
}
