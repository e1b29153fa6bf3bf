/* SPDX-License-Identifier: Apache-2.0 */
#include <rmem/rmem.h>

#include <stdio.h>

/* A node of link ring, alone: what it stores is captured by the hooks. */
int main(void) {
    rmem_options options = RMEM_OPTIONS;
    rmem_node* node = NULL;
    void* memory = NULL;
    uint64_t captured = 0;
    options.link = "ring";
    options.nodes = 1;
    if (rmem_open_with(&node, &options) < 0 ||
        rmem_stores(node, RMEM_STORES_DEFAULT, &memory) < 0) {
        puts(rmem_last_error());
        return 1;
    }
    for (int i = 0; i < 100; ++i) ((volatile uint32_t*)memory)[i] = 5;
    rmem_flush(node, RMEM_FOREVER);
    rmem_counter(node, "stores_captured", &captured);
    printf("%u stores were captured\n", (unsigned)captured);
    return rmem_close(node) < 0 || captured != 100;
}
