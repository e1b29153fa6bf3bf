// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Completion queues and counters: what is read of an endpoint, and what makes it go on.
/// Thread safety, errors: mpi_channel/provider/objects.hpp.

#include "mpi_channel/provider/objects.hpp"
#include "mpi_channel/provider/wait_object.hpp"

#include <boost/circular_buffer.hpp>

#include <cstring>
#include <deque>
#include <optional>
#include <vector>

namespace mpi_channel::provider {

class CompletionQueue final : public fid_cq {
public:
    struct Entry {
        fi_cq_tagged_entry entry;
        fi_addr_t source = FI_ADDR_NOTAVAIL;
    };
    CompletionQueue(Domain& domain, const fi_cq_attr& attributes, void* context);
    ~CompletionQueue() { --domain.users; }

    [[gnu::always_inline]] void add(const Entry& entry) {
        if (room_ == 0) return keep(entry);
        next_ = write(entry, next_);  // a reader waits: not by way of the queue
        if (sources_ != nullptr) *sources_++ = entry.source;
        --room_;
    }
    void add_error(const fi_cq_err_entry& error) {
        errors_.push_back(error);
        if (wait_) wait_->raise();
    }
    void attach(EndpointObject& endpoint);
    void detach(EndpointObject& endpoint);
    [[nodiscard]] bool is_used() const noexcept { return !endpoints_.empty(); }
    /// The program has: what comes next may be the answer, and not the next one of a run.
    void has_sent() noexcept { is_run_ = false; }
    /// It is enabled now.
    void watch(EndpointObject& endpoint);
    void progress();

    [[nodiscard]] ssize_t read(void* buffer, std::size_t count, fi_addr_t* sources);
    [[nodiscard]] ssize_t read_error(fi_cq_err_entry& error);
    /// `timeout_ms` < 0: forever.
    [[nodiscard]] ssize_t wait_and_read(void* buffer, std::size_t count, fi_addr_t* sources,
                                        int timeout_ms);
    /// To be polled, if it was asked for: readable when something may have come since the last look
    /// found nothing.
    [[nodiscard]] std::optional<int> descriptor();
    /// Whether one may sleep on the descriptor: nothing is here, and nothing waits to leave. Makes
    /// progress first.
    [[nodiscard]] bool may_sleep();
    void wake() {
        woken_ = true;
        if (wait_) wait_->raise();
    }

    Domain& domain;

private:
    /// The structures of the formats begin alike. Returns where the next one goes.
    void* write(const Entry& entry, void* to) const {
        if (format_ == FI_CQ_FORMAT_TAGGED) [[likely]] {
            auto* const tagged = static_cast<fi_cq_tagged_entry*>(to);
            *tagged = entry.entry;
            return tagged + 1;
        }
        std::memcpy(to, &entry.entry, entry_bytes_);
        return static_cast<std::byte*>(to) + entry_bytes_;
    }
    void keep(const Entry& entry);
    [[nodiscard]] ssize_t progress_into(void* buffer, std::size_t count, fi_addr_t* sources);
    void read_on();
    WaitObject& wait_object();

    fi_cq_format format_;
    std::size_t entry_bytes_;
    std::optional<WaitObject> wait_;
    boost::circular_buffer<Entry> entries_;  ///< larger when it is full
    std::deque<fi_cq_err_entry> errors_;
    // Of the reader that has found nothing so far
    void* next_ = nullptr;
    fi_addr_t* sources_ = nullptr;
    std::size_t room_ = 0;
    std::vector<EndpointObject*> endpoints_;
    unsigned empty_reads_ = 0;  ///< since something has come
    bool is_run_ = false;       ///< something has come since the program has sent
    bool was_read_ = false;     ///< by the latest call something that had just come
    bool woken_ = false;
};

class Counter final : public fid_cntr {
public:
    Counter(Domain& domain, void* context);
    ~Counter() { --domain.users; }

    void attach(EndpointObject& endpoint);
    void detach(EndpointObject& endpoint);
    [[nodiscard]] bool is_used() const noexcept { return !endpoints_.empty() || regions != 0; }
    bool progress();
    [[nodiscard]] int wait(std::uint64_t threshold, int timeout_ms);

    std::uint64_t value = 0;
    std::uint64_t errors = 0;
    unsigned regions = 0;  ///< that count here
    Domain& domain;

private:
    std::vector<EndpointObject*> endpoints_;
};

}  // namespace mpi_channel::provider
