// SPDX-License-Identifier: Apache-2.0
#include "rmem/error.hpp"

#include <billboard/bbp.h>

#include <iostream>

int main() {
    try {
        throw rmem::Error(rmem::Errc::no_such_ring, "ring demo: none on this host");
    } catch (const rmem::Error& error) {
        std::cout << error.what() << '\n' << bbp_strerror(BBP_EAGAIN) << '\n';
        return error.code() == rmem::Errc::no_such_ring ? 0 : 1;
    }
}
