// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/provider/completion_queue.hpp"

#include "mpi_channel/provider/unsupported.hpp"
#include "rmem/base/clock.hpp"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

namespace mpi_channel::provider {

namespace {

/// MPI reads queues without end: where ranks share a processor another one gets it after this
/// number of empty reads.
constexpr unsigned kCrowdedReads = 8;
/// After this number of them, some tens of microseconds, other programs may want the processor,
/// too, and what is waited for may be late because they have that of its sender.
constexpr unsigned kLongReads = 2048;
constexpr std::size_t kFirstEntries = 1024;
/// A waiting thread looks this often, then sleeps until something comes or this time is over.
constexpr unsigned kLooks = 1000;
constexpr std::int64_t kSleepNs = 1'000'000;

CompletionQueue& queue_of(fid_cq* queue) {
    return *static_cast<CompletionQueue*>(queue);
}
Counter& counter_of(fid_cntr* counter) {
    return *static_cast<Counter*>(counter);
}

std::int64_t end_of(int timeout_ms) {
    return timeout_ms < 0 ? rmem::kNever : rmem::now_ns() + std::int64_t{timeout_ms} * 1'000'000;
}

/// Until the descriptor tells something; without one the processor is only offered to others.
void sleep(int descriptor, std::int64_t most_ns) {
    if (descriptor < 0) {
        ::sched_yield();
        return;
    }
    pollfd polled{descriptor, POLLIN, 0};
    const timespec timeout{0, std::min(kSleepNs, most_ns)};
    ::ppoll(&polled, 1, &timeout, nullptr);
}

// ---- Queues

ssize_t read(fid_cq* queue, void* buffer, std::size_t count) {
    return guarded([&] {
        const auto lock = queue_of(queue).domain.lock();
        return queue_of(queue).read(buffer, count, nullptr);
    });
}

ssize_t read_from(fid_cq* queue, void* buffer, std::size_t count, fi_addr_t* sources) {
    return guarded([&] {
        const auto lock = queue_of(queue).domain.lock();
        return queue_of(queue).read(buffer, count, sources);
    });
}

ssize_t read_error(fid_cq* queue, fi_cq_err_entry* error, std::uint64_t) {
    const auto lock = queue_of(queue).domain.lock();
    return queue_of(queue).read_error(*error);
}

ssize_t wait_read(fid_cq* queue, void* buffer, std::size_t count, const void*, int timeout) {
    return guarded([&] { return queue_of(queue).wait_and_read(buffer, count, nullptr, timeout); });
}

ssize_t wait_read_from(fid_cq* queue, void* buffer, std::size_t count, fi_addr_t* sources,
                       const void*, int timeout) {
    return guarded([&] { return queue_of(queue).wait_and_read(buffer, count, sources, timeout); });
}

int signal(fid_cq* queue) {
    const auto lock = queue_of(queue).domain.lock();
    queue_of(queue).wake();
    return 0;
}

const char* describe_error(fid_cq*, int error, const void*, char* to, std::size_t size) {
    const char* text = ::fi_strerror(error);
    if (to != nullptr && size != 0) {
        std::strncpy(to, text, size - 1);
        to[size - 1] = '\0';
    }
    return text;
}

int close_queue(fid* fid) {
    CompletionQueue& queue = queue_of(reinterpret_cast<fid_cq*>(fid));
    if (queue.is_used()) return -FI_EBUSY;
    delete &queue;
    return 0;
}

int control_queue(fid* fid, int command, void* argument) {
    if (command != FI_GETWAIT) return -FI_ENOSYS;
    return guarded([&] {
        CompletionQueue& queue = queue_of(reinterpret_cast<fid_cq*>(fid));
        const auto lock = queue.domain.lock();
        const auto descriptor = queue.descriptor();
        if (descriptor) *static_cast<int*>(argument) = *descriptor;
        return descriptor ? 0 : -FI_ENODATA;
    });
}

fi_ops queue_fid_ops = [] {
    auto ops = unsupported<fi_ops>();
    ops.close = close_queue;
    ops.control = control_queue;
    return ops;
}();
fi_ops_cq queue_ops = [] {
    auto ops = unsupported<fi_ops_cq>();
    ops.read = read;
    ops.readfrom = read_from;
    ops.readerr = read_error;
    ops.sread = wait_read;
    ops.sreadfrom = wait_read_from;
    ops.signal = signal;
    ops.strerror = describe_error;
    return ops;
}();

// ---- Counters

std::uint64_t counted(fid_cntr* counter) {
    return guarded([&] {
        const auto lock = counter_of(counter).domain.lock();
        counter_of(counter).progress();
        return counter_of(counter).value;
    });
}

std::uint64_t counted_errors(fid_cntr* counter) {
    const auto lock = counter_of(counter).domain.lock();
    return counter_of(counter).errors;
}

template <std::uint64_t Counter::*Which>
int add(fid_cntr* counter, std::uint64_t value) {
    const auto lock = counter_of(counter).domain.lock();
    counter_of(counter).*Which += value;
    return 0;
}

template <std::uint64_t Counter::*Which>
int set(fid_cntr* counter, std::uint64_t value) {
    const auto lock = counter_of(counter).domain.lock();
    counter_of(counter).*Which = value;
    return 0;
}

int wait_counter(fid_cntr* counter, std::uint64_t threshold, int timeout) {
    return guarded([&] { return counter_of(counter).wait(threshold, timeout); });
}

int close_counter(fid* fid) {
    Counter& counter = counter_of(reinterpret_cast<fid_cntr*>(fid));
    if (counter.is_used()) return -FI_EBUSY;
    delete &counter;
    return 0;
}

fi_ops counter_fid_ops = [] {
    auto ops = unsupported<fi_ops>();
    ops.close = close_counter;
    return ops;
}();
fi_ops_cntr counter_ops = [] {
    auto ops = unsupported<fi_ops_cntr>();
    ops.read = counted;
    ops.readerr = counted_errors;
    ops.add = add<&Counter::value>;
    ops.set = set<&Counter::value>;
    ops.wait = wait_counter;
    ops.adderr = add<&Counter::errors>;
    ops.seterr = set<&Counter::errors>;
    return ops;
}();

bool progress_all(const std::vector<EndpointObject*>& endpoints) {
    bool any = false;
    for (EndpointObject* endpoint : endpoints) any |= endpoint->progress_once();
    return any;
}

void attach_to(std::vector<EndpointObject*>& endpoints, EndpointObject& endpoint) {
    if (std::find(endpoints.begin(), endpoints.end(), &endpoint) == endpoints.end())
        endpoints.push_back(&endpoint);
}

std::size_t size_of(fi_cq_format format) {
    switch (format) {
        case FI_CQ_FORMAT_MSG: return sizeof(fi_cq_msg_entry);
        case FI_CQ_FORMAT_DATA: return sizeof(fi_cq_data_entry);
        case FI_CQ_FORMAT_TAGGED: return sizeof(fi_cq_tagged_entry);
        default: return sizeof(fi_cq_entry);
    }
}

}  // namespace

// ---- CompletionQueue

CompletionQueue::CompletionQueue(Domain& its_domain, const fi_cq_attr& attributes, void* context)
    : fid_cq{{FI_CLASS_CQ, context, &queue_fid_ops}, &queue_ops},
      domain(its_domain),
      format_(attributes.format),
      entry_bytes_(size_of(attributes.format)),
      entries_(kFirstEntries) {
    if (attributes.wait_obj == FI_WAIT_FD) wait_.emplace();
    ++domain.users;
}

void CompletionQueue::attach(EndpointObject& endpoint) {
    attach_to(endpoints_, endpoint);
}
void CompletionQueue::detach(EndpointObject& endpoint) {
    if (wait_) wait_->remove(endpoint.wait_descriptor());
    std::erase(endpoints_, &endpoint);
}
void CompletionQueue::watch(EndpointObject& endpoint) {
    if (wait_) wait_->add(endpoint.wait_descriptor());
}

void CompletionQueue::progress() {
    if (progress_all(endpoints_)) {
        const bool is_run = std::exchange(is_run_, true) && empty_reads_ == 0;
        empty_reads_ = 0;
        if (is_run) read_on();
        return;
    }
    if (++empty_reads_ % kCrowdedReads != 0) return;
    const auto is_crowded = [](EndpointObject* endpoint) { return endpoint->is_crowded(); };
    if (empty_reads_ >= kLongReads ||
        std::any_of(endpoints_.begin(), endpoints_.end(), is_crowded)) {
        ::sched_yield();
    }
}

/// Completions of a run by one call: as many as its caller has room for. What completes nothing
/// counts, too: others must not keep the call from its end. A look that finds nothing takes the
/// line that the other rank is about to write, so a rank that answers each message has no runs.
void CompletionQueue::read_on() {
    for (std::size_t looks = room_; looks != 0 && room_ != 0 && progress_all(endpoints_); --looks) {
    }
}

/// MPI reads until nothing is there: what it has read then it would have sooner without another
/// look at the ring.
ssize_t CompletionQueue::read(void* buffer, std::size_t count, fi_addr_t* sources) {
    if (entries_.empty()) {
        if (std::exchange(was_read_, false) && errors_.empty()) return -FI_EAGAIN;
        const ssize_t taken = progress_into(buffer, count, sources);
        was_read_ = taken > 0;
        return taken;
    }
    std::size_t taken = 0;
    for (; taken < count && !entries_.empty(); ++taken) {
        buffer = write(entries_.front(), buffer);
        if (sources != nullptr) sources[taken] = entries_.front().source;
        entries_.pop_front();
    }
    return static_cast<ssize_t>(taken);
}

void CompletionQueue::keep(const Entry& entry) {
    if (entries_.full()) [[unlikely]]
        entries_.set_capacity(2 * entries_.capacity());
    entries_.push_back(entry);
    if (wait_) wait_->raise();
}

/// A completion goes to the reader at once.
ssize_t CompletionQueue::progress_into(void* buffer, std::size_t count, fi_addr_t* sources) {
    next_ = buffer;
    sources_ = sources;
    room_ = count;
    try {
        progress();
    } catch (...) {
        room_ = 0;
        throw;
    }
    const std::size_t taken = count - std::exchange(room_, 0);
    if (taken != 0) return static_cast<ssize_t>(taken);
    return errors_.empty() ? -FI_EAGAIN : -FI_EAVAIL;
}

ssize_t CompletionQueue::read_error(fi_cq_err_entry& error) {
    if (errors_.empty()) return -FI_EAGAIN;
    // `err_data` stays the caller's: nothing is put there.
    void* const data = error.err_data;
    error = errors_.front();
    error.err_data = data;
    errors_.pop_front();
    return 1;
}

ssize_t CompletionQueue::wait_and_read(void* buffer, std::size_t count, fi_addr_t* sources,
                                       int timeout_ms) {
    const std::int64_t end = end_of(timeout_ms);
    for (unsigned looks = 0;; ++looks) {
        int descriptor = -1;
        {
            const auto lock = domain.lock();
            const ssize_t result = read(buffer, count, sources);
            if (result != -FI_EAGAIN) return result;
            if (std::exchange(woken_, false)) return -FI_EAGAIN;
            if (looks % kLooks == kLooks - 1 && empty_reads_ != 0) {
                descriptor = wait_object().descriptor();
                wait_->lower();
            }
        }
        const std::int64_t now = rmem::now_ns();
        if (now >= end) return -FI_EAGAIN;
        sleep(descriptor, end - now);
    }
}

std::optional<int> CompletionQueue::descriptor() {
    return wait_ ? std::optional(wait_->descriptor()) : std::nullopt;
}

bool CompletionQueue::may_sleep() {
    if (wait_) wait_->lower();
    progress();
    const bool has_backlog =
        std::any_of(endpoints_.begin(), endpoints_.end(),
                    [](const EndpointObject* endpoint) { return endpoint->has_backlog(); });
    return empty_reads_ != 0 && entries_.empty() && errors_.empty() && !has_backlog;
}

WaitObject& CompletionQueue::wait_object() {
    if (!wait_) {
        wait_.emplace();
        for (EndpointObject* endpoint : endpoints_) watch(*endpoint);
    }
    return *wait_;
}

// ---- Counter

Counter::Counter(Domain& its_domain, void* context)
    : fid_cntr{{FI_CLASS_CNTR, context, &counter_fid_ops}, &counter_ops}, domain(its_domain) {
    ++domain.users;
}

void Counter::attach(EndpointObject& endpoint) {
    attach_to(endpoints_, endpoint);
}
void Counter::detach(EndpointObject& endpoint) {
    std::erase(endpoints_, &endpoint);
}

bool Counter::progress() {
    return progress_all(endpoints_);
}

int Counter::wait(std::uint64_t threshold, int timeout_ms) {
    const std::int64_t end = end_of(timeout_ms);
    const std::uint64_t errors_before = errors;
    for (unsigned looks = 0;; ++looks) {
        int descriptor = -1;
        {
            const auto lock = domain.lock();
            const bool any = progress();
            if (value >= threshold) return 0;
            if (errors != errors_before) return -FI_EAVAIL;
            if (looks % kLooks == kLooks - 1 && !any && !endpoints_.empty())
                descriptor = endpoints_.front()->wait_descriptor();
        }
        const std::int64_t now = rmem::now_ns();
        if (now >= end) return -FI_ETIMEDOUT;
        sleep(descriptor, end - now);
    }
}

}  // namespace mpi_channel::provider
