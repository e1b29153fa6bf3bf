// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/writers.hpp"

#include "rmem/ring/write_log.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

namespace tools {

namespace {

using rmem::LogReader;
using rmem::LogRecord;

/// Of one log from where its lap began: there a record begins.
template <class Take>
void read_lap(const rmem::LogArea& log, Take take) {
    // It is not the engine, but reads past records of which the words lie in the bank as that does.
    LogReader reader(log, LogReader::Role::engine);
    // relaxed is enough: peek() looks again
    const std::uint64_t head = log.header().head.load(std::memory_order_relaxed);
    reader.seek(head - head % std::max<std::uint64_t>(log.capacity(), 1));
    LogReader::Entry entry;
    while (reader.position() < head && reader.peek(entry) == LogReader::Found::record) {
        take(reader, entry);
        reader.pass(entry);
    }
}

std::vector<std::byte> bytes_of(const LogReader& reader, const LogReader::Entry& entry) {
    std::array<std::uint32_t, rmem::kMaxRecordWords> words{};
    const bool is_kept = (entry.record.flags & LogRecord::kInBank) == 0 &&
                         entry.record.part() == rmem::kWholeWord &&
                         reader.load_words(entry, words.data());
    if (!is_kept) return {};
    const auto* const first = reinterpret_cast<const std::byte*>(words.data());
    return {first, first + entry.record.words * rmem::kWordBytes};
}

}  // namespace

std::vector<WriteOf> last_writes(const rmem::Ring& ring, std::uint64_t begin, std::uint64_t end,
                                 std::size_t most) {
    std::vector<WriteOf> all;
    if (ring.config().link == rmem::LinkKind::direct) return all;
    for (unsigned seat = 0; seat < ring.seats(); ++seat) {
        std::vector<WriteOf> own;
        const rmem::RankSlot& slot = ring.rank(seat);
        read_lap(ring.log(seat), [&](const LogReader& reader, const LogReader::Entry& entry) {
            const std::uint64_t to = entry.record.offset + entry.record.words * rmem::kWordBytes;
            if (entry.record.offset >= end || to <= begin) return;
            WriteOf write;
            write.written_ns = entry.record.written_ns;
            write.is_later = (entry.record.flags & LogRecord::kUntimed) != 0;
            write.rank = seat;
            // relaxed is enough: for people
            write.node = slot.node.load(std::memory_order_relaxed);
            write.offset = entry.record.offset;
            write.bytes = bytes_of(reader, entry);
            own.push_back(std::move(write));
            if (own.size() > 2 * most)
                own.erase(own.begin(), own.end() - static_cast<std::ptrdiff_t>(most));
        });
        const bool is_there = ring.is_joined(seat) && ring.is_alive(seat);
        for (WriteOf& write : own) {
            // relaxed is enough: for people
            if (is_there) write.pid = slot.pid.load(std::memory_order_relaxed);
            all.push_back(std::move(write));
        }
    }
    std::stable_sort(all.begin(), all.end(), [](const WriteOf& a, const WriteOf& b) {
        return a.written_ns < b.written_ns;
    });
    if (all.size() > most) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(most));
    return all;
}

std::string process_text(std::uint32_t pid) {
    if (pid == 0) return "";
    std::string name;
    std::getline(std::ifstream(fmt::format("/proc/{}/comm", pid)), name);
    return name.empty() ? fmt::format("{}", pid) : fmt::format("{} ({})", pid, printable(name));
}

}  // namespace tools
