/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPICH asks libfabric for providers and takes the first. FI_PROVIDER=bbp would leave it this one,
 * but holds for all of the process, also for what the ring does through libfabric. So MPICH is told
 * of this provider alone by the call here. Link fabric takes libfabric's own fi_getinfo out of the
 * library, and sees all of them; long messages that go past the ring ask for theirs by name.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Frees all but those of `provider`. */
static struct fi_info* only(const char* provider, struct fi_info* all) {
    struct fi_info *kept = NULL, **end = &kept;
    while (all != NULL) {
        struct fi_info* const one = all;
        all = one->next;
        one->next = NULL;
        if (strcmp(one->fabric_attr->prov_name, provider) == 0) {
            *end = one;
            end = &one->next;
        } else {
            fi_freeinfo(one);
        }
    }
    return kept;
}

int fi_getinfo(uint32_t version, const char* node, const char* service, uint64_t flags,
               const struct fi_info* hints, struct fi_info** info) {
    int (*getinfo)(uint32_t, const char*, const char*, uint64_t, const struct fi_info*,
                   struct fi_info**) = NULL;
    *(void**)&getinfo = dlsym(RTLD_NEXT, "fi_getinfo");
    if (getinfo == NULL) return -FI_ENOSYS;
    const int error = getinfo(version, node, service, flags, hints, info);
    const int is_named =
        hints != NULL && hints->fabric_attr != NULL && hints->fabric_attr->prov_name != NULL;
    /* With flags it is libfabric itself that asks, for a layer such as ofi_rxm. */
    if (error != 0 || flags != 0 || is_named || getenv("FI_PROVIDER") != NULL) return error;
    *info = only("bbp", *info);
    return *info == NULL ? -FI_ENODATA : 0;
}
