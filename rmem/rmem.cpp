// SPDX-License-Identifier: Apache-2.0
#include "rmem/rmem.h"

#include "rmem/base/failures.hpp"
#include "rmem/given_options.hpp"
#include "rmem/node_impl.hpp"
#include "rmem/ring/waiting/awaiting.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

struct rmem_node {
    rmem::Node node;
};

rmem::Node& rmem::node_of(rmem_node& node) noexcept {
    return node.node;
}

namespace {

using rmem::Deadline;
using rmem::fail;
using rmem::guarded;
using rmem::no_node;
using rmem::no_place;
using rmem::WriteResult;

/// Calls `body` with the C++ node.
template <class Body>
[[gnu::always_inline]] inline int on_node(rmem_node* node, Body&& body) noexcept {
    if (node == nullptr) [[unlikely]]
        return no_node();
    return guarded([&] { return body(node->node); });
}

/// What cannot fail.
template <class Body>
int of_node(const rmem_node* node, Body&& body) noexcept {
    if (node == nullptr) return no_node();
    return static_cast<int>(body(node->node));
}

[[gnu::cold]] int not_written(WriteResult result) {
    if (result == WriteResult::again) return RMEM_EAGAIN;
    return fail(RMEM_EPEER,
                "nothing was written: the others have dropped this node, its daemon has ended, or "
                "this program has closed its descriptors; close the node and open it once more");
}

[[gnu::always_inline]] inline int code_of(WriteResult result) {
    if (result == WriteResult::ok) [[likely]]
        return RMEM_OK;
    return not_written(result);
}

/// Out of line: where a store is the transfer, a write needs no stack.
[[gnu::noinline]] int write_word(rmem_node* node, std::size_t offset, std::uint32_t value) {
    return on_node(node, [&](rmem::Node& n) { return code_of(n.write_word(offset, value)); });
}

[[gnu::noinline]] int write(rmem_node* node, std::size_t offset, const void* from,
                            std::size_t bytes) {
    return on_node(node, [&](rmem::Node& n) { return code_of(n.write(offset, from, bytes)); });
}

rmem_interrupt in_c(const rmem::Interrupt& i) {
    return {i.offset, i.value, i.origin, i.missed, static_cast<std::uint32_t>(i.kind), 0};
}

// ---- Options

int open(rmem_node** node, const rmem_options* options) noexcept {
    if (node == nullptr) return no_place("the node");
    *node = nullptr;
    return guarded([&] {
        const rmem::GivenSettings given(rmem::settings_of(options));
        const bool is_by_environment =
            given.find("RMEM_NODE") == nullptr && given.find("RMEM_RANK") == nullptr;
        const bool awaits = rmem::Await::read().others.value_or(is_by_environment);
        *node = new rmem_node{rmem::Node::open(awaits)};
        return static_cast<int>(RMEM_OK);
    });
}

}  // namespace

extern "C" {

int rmem_open(rmem_node** node) {
    return open(node, nullptr);
}

int rmem_open_with(rmem_node** node, const rmem_options* options) {
    return open(node, options);
}

int rmem_await(rmem_node* node, int64_t timeout_ns) {
    return on_node(node, [&](rmem::Node& n) -> int {
        if (n.await(Deadline::in(timeout_ns))) return RMEM_OK;
        if (!n.is_member()) return not_written(WriteResult::dropped);
        return fail(RMEM_ETIMEDOUT, rmem::not_come(n.ring(), {n.rank(), n.id()}));
    });
}

int rmem_close(rmem_node* node) {
    delete node;
    return RMEM_OK;
}

// ---- What it is

int rmem_id(const rmem_node* node) {
    return of_node(node, [](const rmem::Node& n) { return n.id(); });
}
int rmem_rank(const rmem_node* node) {
    return of_node(node, [](const rmem::Node& n) { return n.rank(); });
}
int rmem_nodes(const rmem_node* node) {
    return of_node(node, [](const rmem::Node& n) { return n.config().nodes; });
}
int rmem_ranks(const rmem_node* node) {
    return of_node(node, [](const rmem::Node& n) { return n.config().ranks; });
}
size_t rmem_size(const rmem_node* node) {
    return node == nullptr ? 0 : node->node.size();
}
int rmem_is_alive(const rmem_node* node, int rank) {
    return of_node(node, [&](const rmem::Node& n) -> int {
        if (rank >= 0 && static_cast<unsigned>(rank) < n.config().ranks)
            return n.is_alive(static_cast<unsigned>(rank)) ? 1 : 0;
        return fail(RMEM_ERANK, fmt::format("there is no rank {} in ring '{}', which has {}", rank,
                                            n.config().name, n.config().ranks));
    });
}
int rmem_is_present(const rmem_node* node, int other) {
    return of_node(node, [&](const rmem::Node& n) -> int {
        if (other >= 0 && static_cast<unsigned>(other) < n.config().nodes)
            return n.ring().is_present(static_cast<unsigned>(other)) ? 1 : 0;
        return fail(RMEM_ERANK, fmt::format("there is no node {} in ring '{}', which has {}", other,
                                            n.config().name, n.config().nodes));
    });
}
int rmem_is_member(const rmem_node* node) {
    return of_node(node, [](const rmem::Node& n) { return n.is_member(); });
}

// ---- Memory

const void* rmem_bank(rmem_node* node) {
    const void* bank = nullptr;
    const int code = on_node(node, [&](rmem::Node& n) {
        bank = n.bank();
        return static_cast<int>(RMEM_OK);
    });
    return code < 0 ? nullptr : bank;
}

uint32_t rmem_load(rmem_node* node, size_t offset) {
    std::uint32_t value = 0;
    const int code = on_node(node, [&](rmem::Node& n) {
        value = n.load(offset);
        return static_cast<int>(RMEM_OK);
    });
    return code < 0 ? 0 : value;
}

int rmem_read(rmem_node* node, size_t offset, void* to, size_t bytes) {
    if (to == nullptr && bytes != 0) return no_place("what is read");
    return on_node(node, [&](rmem::Node& n) {
        n.read(offset, to, bytes);
        return static_cast<int>(RMEM_OK);
    });
}

int rmem_write(rmem_node* node, size_t offset, const void* from, size_t bytes) {
    if (from == nullptr && bytes != 0) return no_place("what is written");
    if (node != nullptr && rmem::Node::Impl::of(node->node).store_bytes(offset, from, bytes))
        return RMEM_OK;
    return write(node, offset, from, bytes);
}

int rmem_write_word(rmem_node* node, size_t offset, uint32_t value) {
    if (node != nullptr && rmem::Node::Impl::of(node->node).store_word(offset, value)) [[likely]]
        return RMEM_OK;
    return write_word(node, offset, value);
}

int rmem_write_part(rmem_node* node, size_t offset, uint32_t value, unsigned bytes) {
    const auto part = static_cast<rmem::WordPart>(std::min<unsigned>(bytes, UINT8_MAX));
    return on_node(node, [&](rmem::Node& n) { return code_of(n.write_part(offset, value, part)); });
}

int rmem_publish(rmem_node* node, size_t offset, const void* from, size_t bytes) {
    if (from == nullptr && bytes != 0) return no_place("what is published");
    return on_node(node, [&](rmem::Node& n) { return code_of(n.publish(offset, from, bytes)); });
}

int rmem_snapshot(rmem_node* node, size_t offset, void* to, size_t bytes) {
    static_assert(RMEM_PUBLISHED_BYTES(5) == rmem::published_bytes(5));
    if (to == nullptr && bytes != 0) return no_place("the snapshot");
    return on_node(node, [&](rmem::Node& n) -> int {
        if (n.snapshot(offset, to, bytes)) return RMEM_OK;
        return fail(RMEM_EAGAIN,
                    "no whole value is there: nothing was published, or its writer is in the "
                    "middle, or has died there; try again");
    });
}

int rmem_flush(rmem_node* node, int64_t timeout_ns) {
    return on_node(node, [&](rmem::Node& n) -> int {
        if (n.flush(Deadline::in(timeout_ns))) {
            if (!n.is_alone()) return RMEM_OK;
            return fail(RMEM_ALONE,
                        fmt::format("no other node of ring '{}' is there, so nobody else has what "
                                    "was flushed; rmem_await waits for them",
                                    n.config().name));
        }
        if (!n.is_member()) return not_written(WriteResult::dropped);
        return fail(RMEM_ETIMEDOUT,
                    "not every live node had all own writes within the deadline; allow more time, "
                    "or find out what delays the others");
    });
}

int rmem_wait_change(rmem_node* node, size_t offset, uint32_t old, uint32_t* now,
                     int64_t timeout_ns) {
    return on_node(node, [&](rmem::Node& n) -> int {
        const std::uint32_t value = n.wait_change(offset, old, Deadline::in(timeout_ns));
        if (now != nullptr) *now = value;
        if (value != old) return RMEM_OK;
        return fail(RMEM_ETIMEDOUT,
                    "the awaited word did not change within the deadline; allow more time, or find "
                    "out what delays its writer");
    });
}

int rmem_poll(rmem_node* node) {
    return on_node(node, [](rmem::Node& n) {
        n.poll();
        return static_cast<int>(RMEM_OK);
    });
}

// ---- Plain stores

int rmem_stores(rmem_node* node, int mode, void** memory) {
    if (memory == nullptr) return no_place("the memory");
    *memory = nullptr;
    return on_node(node, [&](rmem::Node& n) -> int {
        if (mode < RMEM_STORES_DEFAULT || mode > RMEM_STORES_SCAN) {
            return fail(RMEM_EINVAL,
                        fmt::format("there is no way {} to capture stores; give "
                                    "RMEM_STORES_DEFAULT, _EXACT, _INSTRUMENTED or _SCAN",
                                    mode));
        }
        *memory = n.stores(mode == RMEM_STORES_DEFAULT ? rmem::stores_setting()
                                                       : static_cast<rmem::StoresMode>(mode));
        return RMEM_OK;
    });
}

int rmem_set_sync_words(rmem_node* node, size_t offset, size_t bytes) {
    return on_node(node, [&](rmem::Node& n) {
        n.set_sync_words(offset, bytes);
        return static_cast<int>(RMEM_OK);
    });
}

// ---- Card options

int rmem_set_write_me_last(rmem_node* node, int on) {
    return on_node(node, [&](rmem::Node& n) {
        n.set_write_me_last(on != 0);
        return static_cast<int>(RMEM_OK);
    });
}
int rmem_set_data_filter(rmem_node* node, int on) {
    return on_node(node, [&](rmem::Node& n) {
        n.set_data_filter(on != 0);
        return static_cast<int>(RMEM_OK);
    });
}

// ---- Interrupts

int rmem_watch(rmem_node* node, size_t offset, size_t bytes, int trigger) {
    return on_node(node, [&](rmem::Node& n) -> int {
        if (trigger != RMEM_ANY_WRITE && trigger != RMEM_MARKED) {
            return fail(RMEM_EINVAL,
                        fmt::format("there is no trigger {}; it is RMEM_ANY_WRITE or RMEM_MARKED",
                                    trigger));
        }
        n.watch(offset, bytes,
                trigger == RMEM_MARKED ? rmem::Trigger::marked : rmem::Trigger::any_write);
        return RMEM_OK;
    });
}
int rmem_unwatch(rmem_node* node, size_t offset, size_t bytes) {
    return on_node(node, [&](rmem::Node& n) {
        n.unwatch(offset, bytes);
        return static_cast<int>(RMEM_OK);
    });
}
int rmem_mark(rmem_node* node, size_t offset, size_t bytes) {
    return on_node(node, [&](rmem::Node& n) {
        n.mark(offset, bytes);
        return static_cast<int>(RMEM_OK);
    });
}
int rmem_unmark(rmem_node* node, size_t offset, size_t bytes) {
    return on_node(node, [&](rmem::Node& n) {
        n.unmark(offset, bytes);
        return static_cast<int>(RMEM_OK);
    });
}

int rmem_send_interrupt(rmem_node* node, int to, unsigned number, uint32_t value) {
    return on_node(node, [&](rmem::Node& n) {
        static_assert(static_cast<std::uint32_t>(RMEM_ALL_NODES) == rmem::kAllNodes);
        return code_of(n.send_interrupt(static_cast<std::uint32_t>(to), number, value));
    });
}
int rmem_accept_interrupts(rmem_node* node, uint64_t numbers) {
    return on_node(node, [&](rmem::Node& n) {
        static_assert(RMEM_INTERRUPT_NUMBERS == rmem::kInterruptNumbers);
        n.accept_interrupts(numbers);
        return static_cast<int>(RMEM_OK);
    });
}

int rmem_next_interrupt(rmem_node* node, rmem_interrupt* interrupt, int64_t timeout_ns) {
    if (interrupt == nullptr) return no_place("the interrupt");
    return on_node(node, [&](rmem::Node& n) -> int {
        const auto taken = n.next_interrupt(Deadline::in(timeout_ns));
        if (!taken) {
            return fail(RMEM_ETIMEDOUT,
                        "no interrupt came within the deadline; allow more time, or look whether "
                        "the word is watched, and marked by its writer; a callback, where there "
                        "is one (rmem_on_interrupt), takes them all");
        }
        *interrupt = in_c(*taken);
        return RMEM_OK;
    });
}

int rmem_interrupt_fd(rmem_node* node) {
    return on_node(node, [](rmem::Node& n) { return n.interrupt_fd(); });
}

int rmem_on_interrupt(rmem_node* node, void (*function)(void*, const rmem_interrupt*), void* with) {
    return on_node(node, [&](rmem::Node& n) {
        if (function == nullptr) {
            n.on_interrupt({});
        } else {
            n.on_interrupt([function, with](const rmem::Interrupt& i) {
                const rmem_interrupt interrupt = in_c(i);
                function(with, &interrupt);
            });
        }
        return static_cast<int>(RMEM_OK);
    });
}

// ---- Counters and times

int rmem_counter(const rmem_node* node, const char* name, uint64_t* value) {
    if (name == nullptr) return no_place("the counter's name");
    if (value == nullptr) return no_place("the counter's value");
    return of_node(node, [&](const rmem::Node& n) -> int {
        for (std::size_t i = 0; i < rmem::kLinkCounterNames.size(); ++i) {
            if (std::strcmp(rmem::kLinkCounterNames[i].name, name) != 0) continue;
            *value = n.counter(static_cast<rmem::LinkCounter>(i));
            return RMEM_OK;
        }
        return fail(RMEM_EINVAL, fmt::format("there is no counter '{}'; rmem_counter_name gives "
                                             "the names of all",
                                             name));
    });
}

const char* rmem_counter_name(unsigned index) {
    return index < rmem::kLinkCounterNames.size() ? rmem::kLinkCounterNames[index].name : nullptr;
}

int64_t rmem_bound_ns(const rmem_node* node) {
    return node == nullptr ? no_node() : node->node.bound_ns();
}

int64_t rmem_propagation_ns(const rmem_node* node, unsigned permille) {
    if (node == nullptr) return no_node();
    if (permille > 1000) {
        return fail(RMEM_EINVAL, fmt::format("there is no {} of 1000; give 0 to 1000", permille));
    }
    return static_cast<int64_t>(node->node.propagation().quantile(permille / 1000.0));
}

// ---- Errors and version

const char* rmem_strerror(int code) {
    return rmem::meaning_of(code);
}

const char* rmem_last_error(void) {
    return rmem::last_error();
}

int rmem_version(void) {
    return RMEM_VERSION;
}

}  // extern "C"
