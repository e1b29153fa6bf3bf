// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A folder for a test's recordings, and writes that say in their words which they are.

#include "rmem/recording/recording_reader.hpp"
#include "rmem/recording/recording_writer.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace rmem::test {

using Bytes = std::vector<char>;

inline Bytes read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, const Bytes& bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline RecordingInfo an_info() {
    RecordingInfo info;
    info.config.name = "rig";
    info.config.nodes = 4;
    info.config.ranks = 8;
    info.config.link = LinkKind::ring;
    info.config.user_bytes = 1 << 20;
    info.config.system_bytes = 1 << 16;
    info.config.system_hash = 0x1234'5678'9abc'def0;
    info.config.bound_ns = 12'345;
    info.config.timing = parse_timing("scramnet-burst,fifo=lose");
    info.start_wall_ns = 1'795'000'000'123'456'789;
    info.start_ns = 5'000'000'000;
    return info;
}

/// A write that owns its words.
struct OwnedWrite {
    std::int64_t time_ns = 0;
    unsigned node = 0, rank = 0;
    std::uint64_t offset = 0;
    std::uint16_t flags = 0;
    std::vector<std::byte> words;

    RecordedWrite view() const {
        return {time_ns, node, rank, offset, flags, {words.data(), words.size()}};
    }
    friend bool operator==(const OwnedWrite&, const OwnedWrite&) = default;
};

inline OwnedWrite owned(const RecordedWrite& write) {
    return {write.time_ns, write.node,  write.rank,
            write.offset,  write.flags, {write.words.begin(), write.words.end()}};
}

/// The i-th write: node, rank, offset and words follow from i.
inline OwnedWrite numbered(std::uint32_t i, std::int64_t time_ns, std::size_t words = 1) {
    OwnedWrite made{time_ns, i % 4, i % 8, std::uint64_t{i % 1000} * kWordBytes, 0, {}};
    made.words.resize(words * kWordBytes);
    for (std::size_t word = 0; word < words; ++word) {
        const std::uint32_t value = i + static_cast<std::uint32_t>(word);
        std::memcpy(made.words.data() + word * kWordBytes, &value, sizeof value);
    }
    return made;
}

struct RecordingTest : ::testing::Test {
    std::filesystem::path folder;
    std::string path;
    RecordingInfo info = an_info();

    RecordingTest() {
        std::string name = ::testing::TempDir() + "recording-XXXXXX";
        folder = ::mkdtemp(name.data());
        path = folder / "a.rec";
    }
    ~RecordingTest() override { std::filesystem::remove_all(folder); }

    static RecordingWriter::Options replacing() {
        RecordingWriter::Options options;
        options.replace = true;
        return options;
    }
    /// Blocks of `writes_per_block` writes each.
    std::vector<OwnedWrite> record(std::uint32_t count, std::uint32_t writes_per_block) {
        std::vector<OwnedWrite> made;
        RecordingWriter writer(path, info, replacing());
        for (std::uint32_t i = 0; i < count; ++i) {
            made.push_back(numbered(i, info.start_ns + 100 * std::int64_t{i}, 1 + i % 3));
            EXPECT_TRUE(writer.add(made.back().view()));
            if ((i + 1) % writes_per_block == 0) writer.flush();
        }
        EXPECT_TRUE(writer.close());
        return made;
    }

    static std::vector<OwnedWrite> read_all(RecordingReader& reader) {
        std::vector<OwnedWrite> read;
        RecordedWrite write;
        while (reader.next(write)) read.push_back(owned(write));
        return read;
    }
};

}  // namespace rmem::test
