/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMEM_CODES_H
#define RMEM_CODES_H

/*
 * What C calls of this project return when they fail: one list, for the memory (rmem/rmem.h), for
 * messages (billboard/bbp.h, as BBP_E…) and for what is built on both. 0 and more is success.
 */

enum {
    RMEM_OK = 0,
    RMEM_EAGAIN = -1,    /* a call that would have to wait                                      */
    RMEM_EINVAL = -2,    /* an argument, or a setting, is not valid                             */
    RMEM_ERANK = -3,     /* no such rank or node                                                */
    RMEM_ESIZE = -4,     /* larger than the buffer, or too large to send                        */
    RMEM_EPEER = -5,     /* a rank that this call needs is dead or has left, or the ring has    */
                         /* dropped this node                                                   */
    RMEM_ETIMEDOUT = -6, /* the deadline passed                                                 */
    RMEM_ENOMEM = -7,    /* no room: shared memory at the start, private memory later           */
    RMEM_ESYS = -8,      /* the system refused something; the last error says what              */
    RMEM_ECORRUPT = -9,  /* shared memory holds values that no rank of this library writes      */
    RMEM_EVERSION = -10, /* the ring was made by another version or with another layout         */
    RMEM_EBUSY = -11     /* another live process has claimed this rank, or this one has already */
};

#endif /* RMEM_CODES_H */
