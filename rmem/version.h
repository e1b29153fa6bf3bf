/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMEM_VERSION_H
#define RMEM_VERSION_H

/*
 * The version of all libraries and headers of this package; CMakeLists.txt reads it from here.
 *
 * Each interface has a macro and a function, such as BBP_VERSION and bbp_version(): the macro is
 * the version of the header that a program was compiled with, the function that of the library
 * that it runs with. Both are one number, major * 10000 + minor * 100 + patch. Before 1.0 a library
 * of another minor version is another library (its soname says so); one with another patch number
 * may have more functions.
 */

#define RMEM_VERSION_MAJOR 0
#define RMEM_VERSION_MINOR 1
#define RMEM_VERSION_PATCH 0

#define RMEM_VERSION (RMEM_VERSION_MAJOR * 10000 + RMEM_VERSION_MINOR * 100 + RMEM_VERSION_PATCH)

#endif /* RMEM_VERSION_H */
