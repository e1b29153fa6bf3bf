// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/master_key.hpp"

#include <sodium.h>

#include <algorithm>
#include <new>

namespace rmem::udp {

void need_sodium() {
    if (sodium_init() < 0) {
        throw Error(Errc::system, "libsodium does not start: the host gives no random numbers");
    }
}

MasterKey::MasterKey(std::span<const std::byte, kBytes> bytes) {
    need_sodium();
    bytes_.reset(static_cast<std::byte*>(sodium_malloc(kBytes)));
    if (!bytes_) throw std::bad_alloc();
    std::copy(bytes.begin(), bytes.end(), bytes_.get());
    sodium_mprotect_readonly(bytes_.get());
}

void MasterKey::Free::operator()(std::byte* bytes) const noexcept {
    sodium_free(bytes);
}

}  // namespace rmem::udp
