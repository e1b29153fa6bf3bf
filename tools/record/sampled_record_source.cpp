// SPDX-License-Identifier: Apache-2.0
// The user's memory of a ring, looked at every so often.

#include "rmem/base/check.hpp"
#include "tools/record/record_source.hpp"
#include "tools/watch/bank_view.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace tools {

namespace {

using rmem::RecordedWrite;

class SampledSource final : public RecordSource {
public:
    SampledSource(std::shared_ptr<rmem::Ring> ring, unsigned node, std::int64_t interval_ns)
        : ring_(std::move(ring)),
          bank_(ring_->bank(node)),
          interval_ns_(interval_ns),
          seen_(config().user_bytes) {
        RMEM_CHECK(interval_ns > 0 && node < config().nodes &&
                   seen_.size() % rmem::kWordBytes == 0);
        write_.node = node;
        write_.rank = node * config().ranks / config().nodes;
    }

    const rmem::RingConfig& config() const override { return ring_->config(); }
    std::int64_t interval_ns() const override { return interval_ns_; }
    bool has_writers() const override { return may_change(*ring_); }

    void begin(std::int64_t now_ns, const Sink& sink) override {
        // All differs from the zeros of seen_ that is to be given.
        write_.flags = RecordedWrite::kAtStart | RecordedWrite::kSampled;
        look(now_ns, sink);
        write_.flags = RecordedWrite::kSampled;
    }

    void look_first_at(std::size_t offset, std::size_t bytes) override {
        const std::size_t end = std::min(offset + bytes, seen_.size());
        std::size_t at = offset / rmem::kWordBytes * rmem::kWordBytes;  // a mark may be of a byte
        for (; at < end; at += rmem::kWordBytes) first_.emplace(at, 0);
    }

    bool look(std::int64_t now_ns, const Sink& sink) override {
        for (auto& [at, value] : first_) value = load_word(bank_, at);
        auto first = first_.begin();
        std::size_t run_at = 0;
        std::size_t run_bytes = 0;
        const auto give = [&] {
            if (run_bytes == 0) return;
            write_.time_ns = now_ns;
            write_.offset = run_at;
            write_.words = {seen_.data() + run_at, std::exchange(run_bytes, 0)};
            RMEM_CHECK(is_recordable(write_, config()));
            sink(write_);
        };
        for (std::size_t at = 0; at < seen_.size(); at += rmem::kWordBytes) {
            const bool is_first = first != first_.end() && first->first == at;
            const std::uint32_t value = is_first ? (first++)->second : load_word(bank_, at);
            if (std::memcmp(seen_.data() + at, &value, sizeof value) == 0) {
                give();
                continue;
            }
            std::memcpy(seen_.data() + at, &value, sizeof value);
            if (run_bytes == rmem::kMaxRecordedBytes) give();
            if (run_bytes == 0) run_at = at;
            run_bytes += sizeof value;
        }
        give();
        return false;
    }

private:
    const std::shared_ptr<rmem::Ring> ring_;
    const std::byte* const bank_;
    const std::int64_t interval_ns_;
    std::vector<std::byte> seen_;                 // the memory at the last look
    std::map<std::size_t, std::uint32_t> first_;  // words that are looked at first, by offset
    RecordedWrite write_;                         // with the common part of all
};

}  // namespace

std::unique_ptr<RecordSource> make_sampled_source(std::shared_ptr<rmem::Ring> ring, unsigned node,
                                                  std::int64_t interval_ns) {
    return std::make_unique<SampledSource>(std::move(ring), node, interval_ns);
}

}  // namespace tools
