// SPDX-License-Identifier: Apache-2.0
// What Wireshark makes of datagrams with tools/record/rmem.lua.
#include "tests/rmem/link/udp/protocol/datagram_fixture.hpp"
#include "tests/support/tshark.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace rmem::udp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kPacketHeaderBytes = 20 + 8;  // IPv4 and UDP

/// A capture of packets on no particular network (LINKTYPE_RAW), and what tshark says of it.
class Dissector : public UdpDatagram {
protected:
    void SetUp() override {
        if (!test::has_tshark()) GTEST_SKIP() << "there is no tshark here";
        UdpDatagram::SetUp();
        path_ = (std::filesystem::temp_directory_path() / "rmem-dissector-XXXXXX").string();
        ::close(::mkstemp(path_.data()));
        const std::uint32_t header[] = {0xa1b2c3d4, 2U | 4U << 16, 0, 0, 65535, 101};
        std::ofstream(path_, std::ios::binary)
            .write(reinterpret_cast<const char*>(header), sizeof header);
    }
    void TearDown() override { std::filesystem::remove(path_); }

    void capture(const Bytes& payload) {
        const std::size_t size = kPacketHeaderBytes + payload.size();
        Bytes packet(size);
        const auto put = [&](std::size_t at, std::initializer_list<unsigned> bytes) {
            std::ranges::transform(bytes, packet.begin() + static_cast<std::ptrdiff_t>(at),
                                   [](unsigned b) { return static_cast<std::byte>(b); });
        };
        const auto udp = static_cast<unsigned>(size - 20), all = static_cast<unsigned>(size);
        put(0, {0x45, 0, all >> 8, all & 0xff, 0, 0, 0, 0, 1, 17, 0, 0, 10, 0, 0, 1, 239, 1, 2, 3});
        put(20, {0x1d, 0x3a, 0x1d, 0x3a, udp >> 8, udp & 0xff, 0, 0});
        std::ranges::copy(payload, packet.begin() + kPacketHeaderBytes);
        const std::uint32_t frame[] = {1, 0, all, all};
        std::ofstream file(path_, std::ios::binary | std::ios::app);
        file.write(reinterpret_cast<const char*>(frame), sizeof frame);
        file.write(reinterpret_cast<const char*>(packet.data()),
                   static_cast<std::streamsize>(size));
    }
    std::string tshark(const std::string& options) const { return test::tshark(path_, options); }

private:
    std::string path_;
};

TEST_F(Dissector, finds_writes_in_the_datagrams_of_a_ring_by_node_offset_and_word) {
    writer.begin_batch(5, 1'000'000);
    const auto words = numbers(3, 0xcafe);
    writer.add_record({0x40 / kWordBytes, 3, Place::kInterrupt}, words.data());
    writer.end_batch();
    capture(finished());
    EXPECT_THAT(
        tshark("-Y 'rmem.node == 7 && rmem.offset == 0x40 && rmem.word == 0xcb00' -T fields "
               "-e rmem.words -e rmem_udp.sequence -e rmem_udp.interrupt -e rmem_udp.number"),
        HasSubstr("3\t5\t1\t42"));
}

TEST_F(Dissector, shows_each_section_of_a_gso_batch_and_leaves_other_datagrams_alone) {
    write_all_types();
    Bytes gso_batch = finished();
    const Bytes again = gso_batch;
    gso_batch.insert(gso_batch.end(), again.begin(), again.end());
    capture(gso_batch);
    capture(Bytes(200, std::byte{'x'}));
    Bytes cut = again;
    cut.resize(kEnvelopeBytes);
    store(cut.data() + kLengthAt, std::uint16_t{0});
    cut.insert(cut.end() - kTagBytes, {std::byte{1}, std::byte{0}, std::byte{4}, std::byte{0}});
    store(cut.data() + kLengthAt, std::uint16_t{4});
    capture(cut);
    const std::string lines =
        tshark("-T fields -e frame.number -e _ws.col.Protocol -e _ws.col.Info");
    for (const char* section :
         {"batch 100, 2 writes", "of node 9: batch 100", "acks", "nak", "echo", "join",
          "welcome to node 1", "admit of node 1", "snapshot request to node 3", "vector for node 3",
          "chunk 0x0000000000000078: 1 word; chunk 0x00000000000000a0: 1000 words; greeting; "
          "about ring x"})
        EXPECT_THAT(lines, HasSubstr(section));
    EXPECT_THAT(lines, AllOf(HasSubstr("1\trmem udp\t"), HasSubstr("2\tUDP\t"),
                             HasSubstr("3\trmem udp\tnode 7: malformed")));
    EXPECT_THAT(tshark("-T fields -e rmem_udp.number"), HasSubstr("42,42"));
}

}  // namespace
}  // namespace rmem::udp
