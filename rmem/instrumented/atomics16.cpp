// SPDX-License-Identifier: Apache-2.0
// Atomic operations of 16 bytes, and of sizes that no processor has: libatomic's. An object of its
// own, so that only programs that have such are linked with libatomic.

#include "rmem/instrumented/atomics.hpp"
#include "rmem/instrumented/wrapped.hpp"

__extension__ using Sixteen = unsigned __int128;

ATOMICS(128, Sixteen)

using rmem::instrumented::bytes;

SHAPED(4, __atomic_store, void(std::size_t, void*, void*, int), bytes(b, a))
SHAPED(5, __atomic_exchange, void(std::size_t, void*, void*, void*, int), bytes(b, a))
SHAPED(6, __atomic_compare_exchange, bool(std::size_t, void*, void*, void*, int, int),
       bytes(b, result ? a : 0))
SHAPED(3, __atomic_store_16, void(void*, Sixteen, int), bytes(a, 16))
SHAPED(3, __atomic_exchange_16, Sixteen(void*, Sixteen, int), bytes(a, 16))
SHAPED(5, __atomic_compare_exchange_16, bool(void*, void*, Sixteen, int, int),
       bytes(a, result ? 16 : 0))
SHAPED(3, __atomic_fetch_add_16, Sixteen(void*, Sixteen, int), bytes(a, 16))
SHAPED(3, __atomic_fetch_sub_16, Sixteen(void*, Sixteen, int), bytes(a, 16))
SHAPED(3, __atomic_fetch_and_16, Sixteen(void*, Sixteen, int), bytes(a, 16))
SHAPED(3, __atomic_fetch_or_16, Sixteen(void*, Sixteen, int), bytes(a, 16))
SHAPED(3, __atomic_fetch_xor_16, Sixteen(void*, Sixteen, int), bytes(a, 16))
