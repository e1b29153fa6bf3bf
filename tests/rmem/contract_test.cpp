// SPDX-License-Identifier: Apache-2.0
// ctest: check apart

/// The contract of rmem/rmem.h, of a node in the process (rmem/rmem.cpp).

#include "tests/support/rmem_contract.hpp"

namespace rmem::test {

std::vector<LinkKind> contract_links() {
    return {LinkKind::direct, LinkKind::ring, LinkKind::udp, LinkKind::fabric};
}

ContractNode open_contract_node(const std::string& ring, LinkKind link, int node,
                                const std::string& faults) {
    const Options options(ring, link, node, faults);
    rmem_node* opened = nullptr;
    EXPECT_EQ(rmem_open_with(&opened, options.get()), RMEM_OK) << rmem_last_error();
    return {opened, [](rmem_node* each) { EXPECT_EQ(rmem_close(each), RMEM_OK); }};
}

}  // namespace rmem::test
