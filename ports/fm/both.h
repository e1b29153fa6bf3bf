/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FM_BOTH_H
#define FM_BOTH_H

/*
 * FM_extract where a C file includes <fm/fm1.h> and <fm/fm2.h>, which do that by themselves:
 * without an argument it is 1.0's, with one 2.x's. C has no overloading, so here, and only here, it
 * is a macro. (In C++ it is overloaded.)
 */

#define FM_extract(...) (sizeof #__VA_ARGS__ > 1 ? FM2_extract(__VA_ARGS__ + 0UL) : FM1_extract())

#endif
