/* SPDX-License-Identifier: Apache-2.0 */
#include <billboard/bbp.h>

#include <stdio.h>

int main(void) {
    const int version = bbp_version();
    printf("version %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
    printf("BBP_EPEER means: %s\n", bbp_strerror(BBP_EPEER));
    return version == BBP_VERSION ? 0 : 1;
}
