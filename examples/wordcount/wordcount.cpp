// SPDX-License-Identifier: Apache-2.0
/// Counts the words of a text with all ranks. See README.md.
///
/// Rank 0 multicasts the text block by block; each worker counts its share of every block and at
/// the end sends its counts to rank 0, which merges them. An empty message ends each of the two
/// streams.

#include "words.hpp"

#include <billboard/bbp.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Options {
    std::vector<std::string> files;
    std::size_t block_bytes = 64 * 1024;
    std::size_t top = 10;
    std::string counts_file;
};

int check(int result, const char* call) {
    if (result < 0) throw std::runtime_error(fmt::format("{}: {}", call, bbp_last_error()));
    return result;
}

/// One process of the ring, from construction to destruction.
class Rank {
public:
    Rank() {
        check(bbp_init(&rank_, &ranks_), "bbp_init");
        for (int r = 1; r < ranks_; ++r) workers_.push_back(r);
    }
    ~Rank() { bbp_finalize(); }
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;

    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    /// Workers are all ranks but 0.
    std::size_t workers() const { return workers_.size(); }

    void send(int to, std::string_view text) const {
        check(bbp_send(to, text.data(), text.size()), "bbp_send");
    }
    void send_to_workers(std::string_view text) const {
        const int count = static_cast<int>(workers_.size());
        check(bbp_mcast(workers_.data(), count, text.data(), text.size()), "bbp_mcast");
    }
    /// The next message; the buffer grows to what it needs, for a message that is too large stays.
    /// (Of anybody another may come first, and be larger still.)
    std::string_view receive(int from) {
        std::size_t size = 0;
        int result = bbp_recv(from, buffer_.data(), buffer_.size(), &size);
        while (result == BBP_ESIZE) {
            buffer_.resize(size);
            result = bbp_recv(from, buffer_.data(), buffer_.size(), &size);
        }
        check(result, "bbp_recv");
        return std::string_view(buffer_).substr(0, size);
    }

private:
    int rank_ = 0;
    int ranks_ = 0;
    std::vector<int> workers_;
    std::string buffer_;
};

std::string read_files(const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) {
        std::ifstream file(name, std::ios::binary);
        text.append(std::istreambuf_iterator<char>(file), {});
        if (!file) throw std::runtime_error(fmt::format("cannot read {}", name));
        text += '\n';  // the last word of a file is not the first one of the next
    }
    return text;
}

void multicast_text(const Rank& rank, std::string_view text, std::size_t block_bytes) {
    while (!text.empty()) {
        const std::string_view block = words::whole_words(text, block_bytes);
        rank.send_to_workers(block);
        text.remove_prefix(block.size());
    }
    rank.send_to_workers({});
}

words::Counts merge_counts(Rank& rank) {
    words::Counts counts;
    for (std::size_t at_work = rank.workers(); at_work > 0;) {
        const std::string_view part = rank.receive(BBP_ANY);
        if (part.empty()) --at_work;
        words::add_text(part, counts);
    }
    return counts;
}

void work(Rank& rank, std::size_t block_bytes) {
    const auto index = static_cast<std::size_t>(rank.rank() - 1);
    words::Counts counts;
    for (;;) {
        const std::string_view block = rank.receive(0);
        if (block.empty()) break;
        words::count(words::share(block, index, rank.workers()), counts);
    }

    const std::string result = words::to_text(counts);
    for (std::string_view rest = result; !rest.empty();) {
        const std::size_t last_line = rest.rfind('\n', block_bytes);
        const std::string_view lines = rest.substr(0, last_line + (last_line != rest.npos));
        rank.send(0, lines);
        rest.remove_prefix(lines.size());
    }
    rank.send(0, {});
}

void write_counts(const std::string& file, const words::Counts& counts) {
    std::ofstream out(file, std::ios::binary);
    out << words::to_text(counts);
    if (!out.flush()) throw std::runtime_error(fmt::format("cannot write {}", file));
}

void report(const Options& options, const Rank& rank, const words::Counts& counts) {
    fmt::print("{} words, {} different, counted by {}\n", words::total(counts), counts.size(),
               rank.workers() == 0 ? "rank 0 alone" : fmt::format("{} workers", rank.workers()));
    std::vector<std::pair<std::uint64_t, std::string_view>> by_count;
    for (const auto& [word, times] : counts) by_count.emplace_back(times, word);
    std::stable_sort(by_count.begin(), by_count.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    by_count.resize(std::min(by_count.size(), options.top));
    for (const auto& [times, word] : by_count) fmt::print("{:9} {}\n", times, word);
    if (!options.counts_file.empty()) write_counts(options.counts_file, counts);
}

void run(const Options& options) {
    Rank rank;
    if (rank.rank() != 0) {
        work(rank, options.block_bytes);
        return;
    }
    const std::string text = read_files(options.files);
    words::Counts counts;
    if (rank.workers() == 0) {
        words::count(text, counts);
    } else {
        multicast_text(rank, text, options.block_bytes);
        counts = merge_counts(rank);
    }
    report(options, rank, counts);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app(
        "Counts the words of a text: rank 0 multicasts it, the others count, rank 0 merges.",
        "wordcount");
    app.add_option("files", options.files, "The text")->required()->check(CLI::ExistingFile);
    app.add_option("--block", options.block_bytes, "Bytes per multicast, about")
        ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 30))
        ->capture_default_str();
    app.add_option("--top", options.top, "Number of the commonest words to print")
        ->capture_default_str();
    app.add_option("--counts", options.counts_file, "Write all counts to this file");
    app.footer("Example: rmem run -n 4 -- wordcount /usr/share/common-licenses/GPL-3");
    CLI11_PARSE(app, argc, argv);
    try {
        run(options);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "wordcount: {}\n", error.what());
        return 1;
    }
}
