/* SPDX-License-Identifier: Apache-2.0 */
#include <billboard/bbp.h>

#include <stdio.h>

int main(void) {
    return printf("BBP_EPEER means: %s\n", bbp_strerror(BBP_EPEER)) > 0 ? 0 : 1;
}
