/* SPDX-License-Identifier: Apache-2.0 */
#include <billboard/bbp.h>
#include <rmem/rmem.h>

#include <stdio.h>

int main(void) {
    const int version = bbp_version();
    rmem_options options = RMEM_OPTIONS;
    rmem_node* node = NULL;
    printf("version %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
    printf("BBP_EPEER means: %s\n", bbp_strerror(BBP_EPEER));
    options.link = "no such link";
    if (rmem_open_with(&node, &options) != RMEM_EINVAL || node != NULL) return 1;
    printf("%s\n", rmem_last_error());
    return version == BBP_VERSION && rmem_version() == RMEM_VERSION ? 0 : 1;
}
