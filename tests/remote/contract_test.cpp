// SPDX-License-Identifier: Apache-2.0
// ctest: check apart

/// The contract of rmem/rmem.h, of a node that `rmem serve` keeps (remote/rmem_calls.cpp, which is
/// linked with this program in the place of rmem/rmem.cpp).

#include "remote/rmem_calls.hpp"
#include "tests/support/rmem_contract.hpp"
#include "tests/support/tool.hpp"

namespace rmem::test {

std::vector<LinkKind> contract_links() {
    return {LinkKind::direct, LinkKind::ring};
}

ContractNode open_contract_node(const std::string& ring, LinkKind link, int node,
                                const std::string& faults) {
    std::vector<std::string> words = {"serve", "--listen=127.0.0.1:0", "--nodes=2"};
    for (const std::string& word :
         {"--ring=" + ring, std::string("--link=") + name_of(link),
          "--node=" + std::to_string(node), "--size=" + std::to_string(kBytes)})
        words.push_back(word);
    if (!faults.empty()) words.insert(words.end(), {"--timing=gt200", "--faults=" + faults});
    auto server = std::make_shared<Tool>(words);
    EXPECT_TRUE(server->prints(" port ")) << server->err();
    const std::string out = server->out();
    const auto port = static_cast<std::uint16_t>(std::stoul(out.substr(out.rfind(' '))));
    rmem_node* opened = nullptr;
    EXPECT_EQ(remote::open_node(&opened, {"127.0.0.1", port}), RMEM_OK) << rmem_last_error();
    return {opened, [server](rmem_node* each) { EXPECT_EQ(rmem_close(each), RMEM_OK); }};
}

}  // namespace rmem::test
