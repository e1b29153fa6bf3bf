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

TEST(ServedMemory, stores_through_a_pointer_leave_before_an_interrupt_a_flush_and_a_read) {
    const RingName name;
    const auto a = open_contract_node(name.get(), LinkKind::direct, 0);
    const auto b = open_contract_node(name.get(), LinkKind::direct, 1);
    ASSERT_EQ(rmem_accept_interrupts(b.get(), 1), RMEM_OK);
    void* memory = nullptr;
    ASSERT_EQ(remote::map_node(a.get(), 0, kBytes, &memory), RMEM_OK) << rmem_last_error();
    const std::atomic_ref word(*(static_cast<std::uint32_t*>(memory) + 16));
    for (std::uint32_t i = 3; i < 300; i += 3) {
        // relaxed is enough: no order is promised but that of the calls
        word.store(i, std::memory_order_relaxed);
        ASSERT_EQ(rmem_send_interrupt(a.get(), 1, 0, i), RMEM_OK);
        rmem_interrupt interrupt{};
        ASSERT_EQ(rmem_next_interrupt(b.get(), &interrupt, RMEM_FOREVER), RMEM_OK);
        EXPECT_EQ(rmem_load(b.get(), 64), i);
        // relaxed is enough: as above
        word.store(i + 1, std::memory_order_relaxed);
        ASSERT_EQ(rmem_flush(a.get(), RMEM_FOREVER), RMEM_OK);
        EXPECT_EQ(rmem_load(b.get(), 64), i + 1);
        // relaxed is enough: as above
        word.store(i + 2, std::memory_order_relaxed);
        EXPECT_EQ(rmem_load(a.get(), 64), i + 2);
    }
}

}  // namespace rmem::test
