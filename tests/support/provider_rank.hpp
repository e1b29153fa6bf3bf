// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A rank of a test that uses libfabric's own interface, over the provider that was built.
///
///     with_fabric(2, {.caps = FI_TAGGED}, [](Rank& me, ProviderRank& fabric) {
///         if (me.rank == 0) fabric.send(1, text, 8, kTag, &me);
///         …fabric.next()…
///     });
///
/// All ranks are processes, each with one endpoint; opening waits until all have theirs, and all go
/// on until the last has done its part. An error is a failed check (tests/support/checks.hpp).
/// Closing checks that everything lets itself be closed.

#include "tests/support/rank_processes.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#ifndef BBP_PROVIDER_PATH  // tests/CMakeLists.txt gives the folder of this build's libbbp-fi.so
#define BBP_PROVIDER_PATH "."
#endif

namespace rmem::test {

inline void check_call(std::int64_t found, std::string_view what, std::int64_t expected = 0,
                       Place place = Place::here()) {
    check_equal(found, expected, what, place);
}

struct ProviderSetup {
    std::uint64_t caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE;
    int mr_mode = 0;
    fi_threading threading = FI_THREAD_DOMAIN;
    fi_av_type vector = FI_AV_TABLE;
    fi_cq_format format = FI_CQ_FORMAT_TAGGED;
    fi_wait_obj wait = FI_WAIT_NONE;
    bool is_selective = false;
    std::vector<std::uint64_t> counters{};  ///< the flags of each
};

/// An entry of a queue, or of its errors.
struct Entry {
    fi_cq_tagged_entry told{};
    fi_cq_err_entry error{};  ///< err 0: it is none
    fi_addr_t source = FI_ADDR_NOTAVAIL;
};

class ProviderRank {
public:
    explicit ProviderRank(Rank& me, const ProviderSetup& setup = {}) : me_(me) {
        fi_info* hints = fi_allocinfo();
        hints->caps = setup.caps;
        hints->mode = FI_CONTEXT | FI_CONTEXT2;
        hints->ep_attr->type = FI_EP_RDM;
        hints->domain_attr->mr_mode = setup.mr_mode;
        hints->domain_attr->threading = setup.threading;
        hints->domain_attr->av_type = setup.vector;
        hints->fabric_attr->prov_name = ::strdup("bbp");
        check_call(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info), "fi_getinfo");
        fi_freeinfo(hints);
        check_call(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
        check_call(fi_domain(fabric, info, &domain, nullptr), "fi_domain");
        fi_av_attr vector_attributes{};
        vector_attributes.type = setup.vector;
        check_call(fi_av_open(domain, &vector_attributes, &vector, nullptr), "fi_av_open");
        fi_cq_attr queue_attributes{};
        queue_attributes.format = setup.format;
        queue_attributes.wait_obj = setup.wait;
        check_call(fi_cq_open(domain, &queue_attributes, &queue, nullptr), "fi_cq_open");
        check_call(fi_endpoint(domain, info, &ep, nullptr), "fi_endpoint");
        check_call(fi_ep_bind(ep, &vector->fid, 0), "binding the vector");
        const std::uint64_t selective = setup.is_selective ? FI_SELECTIVE_COMPLETION : 0;
        check_call(fi_ep_bind(ep, &queue->fid, FI_TRANSMIT | FI_RECV | selective),
                   "binding the queue");
        for (const std::uint64_t flags : setup.counters) {
            fi_cntr_attr attributes{};
            check_call(fi_cntr_open(domain, &attributes, &counters.emplace_back(), nullptr),
                       "fi_cntr_open");
            check_call(fi_ep_bind(ep, &counters.back()->fid, flags), "binding a counter");
        }
    }
    /// Enables the endpoint, and tells all ranks' addresses to each other.
    void enable() {
        check_call(fi_enable(ep), "fi_enable");
        Address own;
        std::size_t size = sizeof own;
        check_call(fi_getname(&ep->fid, own.words, &size), "fi_getname");
        check_equal(size, sizeof own, "the length of a name");
        for (std::size_t i = 0; i < 4; ++i) me_.shared[place(me_.rank) + i] = own.words[i];
        meet();
        for (int r = 0; r < me_.ranks; ++r) {
            Address other;
            for (std::size_t i = 0; i < 4; ++i) other.words[i] = me_.shared[place(r) + i];
            of.push_back(FI_ADDR_NOTAVAIL);
            check_call(fi_av_insert(vector, other.words, 1, &of.back(), 0, nullptr), "fi_av_insert",
                       1);
        }
    }
    /// Until all ranks have come here, by memory that is not the ring's; nothing of the endpoint
    /// goes on meanwhile.
    void meet() {
        ++meetings_;
        me_.raise(kMeeting);
        me_.await_word(kMeeting, meetings_ * static_cast<std::uint32_t>(me_.ranks));
    }
    /// The same, while this endpoint goes on.
    void meet_in_progress() {
        ++meetings_;
        me_.raise(kMeeting);
        await(
            [&] {
                fi_cq_read(queue, nullptr, 0);
                return me_.shared[kMeeting] >= meetings_ * static_cast<std::uint32_t>(me_.ranks);
            },
            "the others");
    }
    // ---- Calls that must begin well; 0 and 1 are each other's other
    fi_addr_t other() const { return of[static_cast<std::size_t>(1 - me_.rank)]; }
    /// For calls by a description: of a message to or from the other, and its bytes.
    fi_msg_tagged tagged(std::uint64_t tag, void* context, const iovec* bytes = nullptr) const {
        fi_msg_tagged message{};
        message.msg_iov = bytes;
        message.iov_count = bytes != nullptr;
        message.addr = other();
        message.tag = tag;
        message.context = context;
        return message;
    }
    void send(const void* bytes, std::size_t size, std::uint64_t tag, void* context,
              Place where = Place::here()) {
        check_call(fi_tsend(ep, bytes, size, nullptr, other(), tag, context), "fi_tsend", 0, where);
    }
    void send_with_word(const void* bytes, std::size_t size, std::uint64_t data, std::uint64_t tag,
                        void* context, Place where = Place::here()) {
        check_call(fi_tsenddata(ep, bytes, size, nullptr, data, other(), tag, context),
                   "fi_tsenddata", 0, where);
    }
    void inject(const void* bytes, std::size_t size, std::uint64_t tag,
                Place where = Place::here()) {
        check_call(fi_tinject(ep, bytes, size, other(), tag), "fi_tinject", 0, where);
    }
    void receive(void* bytes, std::size_t size, std::uint64_t tag, void* context,
                 Place where = Place::here()) {
        check_call(fi_trecv(ep, bytes, size, nullptr, other(), tag, 0, context), "fi_trecv", 0,
                   where);
    }
    /// Of the other's memory.
    void write(const void* bytes, std::size_t size, std::uint64_t at, std::uint64_t key,
               void* context, Place where = Place::here()) {
        check_call(fi_write(ep, bytes, size, nullptr, other(), at, key, context), "fi_write", 0,
                   where);
    }
    void read(void* bytes, std::size_t size, std::uint64_t at, std::uint64_t key, void* context,
              Place where = Place::here()) {
        check_call(fi_read(ep, bytes, size, nullptr, other(), at, key, context), "fi_read", 0,
                   where);
    }

    /// Waits for the next entry, of any kind.
    Entry next(Place where = Place::here()) {
        Entry entry;
        const std::int64_t end = clock_ns() + std::chrono::nanoseconds(kAwaitDeadline).count();
        for (;;) {
            const ssize_t result = fi_cq_readfrom(queue, &entry.told, 1, &entry.source);
            if (result == 1) return entry;
            if (result == -FI_EAVAIL) {
                check_call(fi_cq_readerr(queue, &entry.error, 0), "fi_cq_readerr", 1, where);
                return entry;
            }
            check_call(result, "fi_cq_readfrom", -FI_EAGAIN, where);
            if (clock_ns() > end) fail("no completion came", where);
        }
    }
    /// One without an error, of this call.
    Entry expect(const void* context, std::uint64_t flags, Place where = Place::here()) {
        const Entry entry = next(where);
        check_equal(entry.error.err, 0, "an error", where);
        check(entry.told.op_context == context, "the completion of another call", where);
        check_equal(entry.told.flags & flags, flags, "its flags", where);
        return entry;
    }
    /// One with an error, of this call.
    fi_cq_err_entry expect_error(const void* context, int error, Place where = Place::here()) {
        const Entry entry = next(where);
        check_equal(entry.error.err, error, "the error", where);
        check(entry.error.op_context == context, "the error of another call", where);
        return entry.error;
    }
    void expect_nothing(Place where = Place::here()) {
        Entry entry;
        check_call(fi_cq_read(queue, &entry.told, 1), "fi_cq_read", -FI_EAGAIN, where);
    }
    fid_mr* region(void* memory, std::size_t size, std::uint64_t access, std::uint64_t key) {
        fid_mr* made = nullptr;
        check_call(fi_mr_reg(domain, memory, size, access, 0, key, 0, &made, nullptr), "fi_mr_reg");
        return made;
    }
    /// In the order in which it must be.
    void close() {
        check_call(fi_close(&ep->fid), "closing the endpoint");
        for (fid_cntr* each : counters) check_call(fi_close(&each->fid), "closing a counter");
        check_call(fi_close(&queue->fid), "closing the queue");
        check_call(fi_close(&vector->fid), "closing the vector");
        check_call(fi_close(&domain->fid), "closing the domain");
        check_call(fi_close(&fabric->fid), "closing the fabric");
        fi_freeinfo(info);
    }

    fi_info* info = nullptr;
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
    fid_av* vector = nullptr;
    fid_cq* queue = nullptr;
    fid_ep* ep = nullptr;
    std::vector<fi_addr_t> of;  ///< by rank
    std::vector<fid_cntr*> counters;

private:
    static constexpr std::size_t kMeeting = 1000, kAddresses = 800;
    struct Address {
        std::uint32_t words[4];
    };
    static std::size_t place(int rank) { return kAddresses + 4 * static_cast<std::size_t>(rank); }

    Rank& me_;
    std::uint32_t meetings_ = 0;
};

/// A ring whose ranks find the provider.
inline RingSetup provider_ring(unsigned ranks = 2) {
    RingSetup setup;
    setup.ranks = ranks;
    setup.extra["FI_PROVIDER_PATH"] = BBP_PROVIDER_PATH;
    setup.extra["FI_PROVIDER"] = "bbp";
    return setup;
}

using FabricBody = std::function<void(Rank&, ProviderRank&)>;

inline void with_fabric(const RingSetup& ring, const ProviderSetup& setup, const FabricBody& body) {
    run_ranks(ring, [&](Rank& me) {
        ProviderRank fabric(me, setup);
        fabric.enable();
        body(me, fabric);
        fabric.meet_in_progress();
        fabric.close();
    });
}
inline void with_fabric(unsigned ranks, const ProviderSetup& setup, const FabricBody& body) {
    with_fabric(provider_ring(ranks), setup, body);
}

/// Rank `dies` is killed once both have raised word 0; then word 1 is raised.
inline void run_while_one_dies(unsigned dies, const RingSetup& setup, const Body& body) {
    RankProcesses ring(setup);
    for (unsigned r = 0; r < setup.ranks; ++r) ring.start_bare(r, body);
    ring.await_word(0, 2);
    ring.kill(dies);
    ++ring.shared()[1];
    ring.finish();
}

inline std::vector<char> some_bytes(std::size_t size, unsigned seed) {
    std::vector<char> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<char>(seed * 31 + i * 7 + (i >> 9));
    return bytes;
}

}  // namespace rmem::test
