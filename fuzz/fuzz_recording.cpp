// SPDX-License-Identifier: Apache-2.0

/// libFuzzer target: a file with any contents that a reader takes for a recording.
///
///     cmake --preset asan && cmake --build --preset asan
///     build/fuzz/fuzz/fuzz_recording -max_len=4096 my-corpus fuzz/corpus
///
/// An even first byte: the rest is the file. An odd one: the rest becomes a file's blocks, with
/// checksums that are right, since no fuzzer guesses them; the bytes under them are the fuzzer's.
/// A reader's writes must be possible on the header's ring, in the file's order, also after
/// seeking.

#include "rmem/recording/recording_reader.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace {

using rmem::RecordedWrite;
using rmem::RecordingReader;
namespace format = rmem::recording_format;
using Input = std::span<const std::uint8_t>;

rmem::RecordingInfo an_info() {
    rmem::RecordingInfo info;
    info.config.nodes = 4;
    info.config.ranks = 4;
    info.config.user_bytes = 4096;
    return info;
}

template <class T>
T take(Input& input) {
    T value{};
    const std::size_t bytes = std::min(sizeof value, input.size());
    std::memcpy(&value, input.data(), bytes);
    input = input.subspan(bytes);
    return value;
}

/// A block by the input, after the one before it unless the input says otherwise.
void add_block(std::vector<std::byte>& file, Input& input, format::Key key, std::uint64_t& number) {
    const auto how = take<std::uint8_t>(input);
    const std::size_t bytes = std::min<std::size_t>(take<std::uint8_t>(input), input.size());
    const auto* payload = reinterpret_cast<const std::byte*>(input.data());
    format::BlockHeader header;
    header.number = (how & 1) != 0 ? take<std::uint64_t>(input) : number++;
    header.base_ns = (how & 2) != 0 ? take<std::int64_t>(input) : 0;
    header.least = (how & 4) != 0 ? take<std::int32_t>(input) : -2'000'000'000;
    header.most = (how & 8) != 0 ? take<std::int32_t>(input) : 2'000'000'000;
    header.payload_bytes =
        (how & 16) != 0 ? take<std::uint32_t>(input) : static_cast<std::uint32_t>(bytes);
    header.records = (how & 32) != 0 ? take<std::uint8_t>(input) : 1;
    header.payload_checksum = format::checksum(payload, bytes);
    std::byte put[format::kBlockHeaderBytes];
    format::put_block_header(put, header, key);
    file.insert(file.end(), put, put + sizeof put);
    file.insert(file.end(), payload, payload + bytes);
    input = input.subspan(std::min(bytes, input.size()));
}

std::vector<std::byte> make_file(Input input) {
    const bool sealed = (take<std::uint8_t>(input) & 1) != 0;
    if (!sealed) {
        const auto* bytes = reinterpret_cast<const std::byte*>(input.data());
        return {bytes, bytes + input.size()};
    }
    std::vector<std::byte> file(format::kFileHeaderBytes);
    const format::Key key = format::put_file_header(file.data(), an_info());
    std::uint64_t number = 0;
    while (!input.empty()) add_block(file, input, key, number);
    return file;
}

void demand(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what);
    std::abort();
}

/// The address sanitizer looks at each byte.
void touch(std::span<const std::byte> bytes) {
    volatile std::uint8_t sum = 0;
    for (const std::byte byte : bytes) sum = sum ^ static_cast<std::uint8_t>(byte);
}

std::uint64_t read_all(RecordingReader& reader, std::int64_t from_ns) {
    RecordedWrite write;
    std::uint64_t writes = 0;
    while (reader.next(write)) {
        demand(format::can_be(write, reader.info().config), "a write that cannot be");
        demand(writes != 0 || write.time_ns >= from_ns, "a first write before what was sought");
        touch(write.words);
        ++writes;
    }
    demand(reader.report().writes == writes, "a report with other writes");
    demand(to_string(reader.report()).size() > 10, "a report without words");
    return writes;
}

void read_file(const std::vector<std::byte>& bytes, std::int64_t seek_ns) {
    const int fd = ::memfd_create("recording", MFD_CLOEXEC);
    demand(fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
           "no memory for the file");
    try {
        RecordingReader reader(fd, "recording");
        const std::uint64_t writes = read_all(reader, -rmem::kMaxRecordedTimeNs);
        reader.seek(seek_ns);
        demand(read_all(reader, seek_ns) <= writes, "more writes after seeking than before");
    } catch (const rmem::Error& error) {
        demand(error.code() != rmem::Errc::system, error.what());  // refused for its contents
    }
}

}  // namespace

// libFuzzer knows it by this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
    if (size == 0) return 0;
    read_file(make_file({data, size}), std::int64_t{data[0]} << 24);
    return 0;
}
