// SPDX-License-Identifier: Apache-2.0
// In place of the rest where this library is built without libfabric's headers.
#include "rmem/link/fabric/make_endpoint.hpp"

namespace rmem::fabric {

namespace {

[[noreturn]] void refuse() {
    throw Error(Errc::no_fabric,
                "this library was built without link fabric (RMEM_BUILD_FABRIC=OFF); give "
                "RMEM_LINK=udp");
}

}  // namespace

std::unique_ptr<udp::Carrier> make_endpoint(const EndpointSettings&) {
    refuse();
}

std::unique_ptr<FarMemory> make_far_memory(FarSettings) {
    return nullptr;
}

std::vector<Offer> offers(const std::string&) {
    refuse();
}

}  // namespace rmem::fabric
