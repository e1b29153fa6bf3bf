// SPDX-License-Identifier: Apache-2.0

/// Calls of rmem.h, for a node elsewhere: those that programs of cards need, and no others. In a
/// fork()ed child is_alive and counter are refused, too: their answers come from the server.

#include "remote/rmem_calls.hpp"
#include "rmem/base/failures.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

struct rmem_node {
    remote::Client client;
};

namespace {

/// Calls `body` with the client.
template <class Body>
int on_client(rmem_node* node, Body&& body) noexcept {
    if (node == nullptr) return rmem::no_node();
    return rmem::guarded([&] {
        if (node->client.is_inherited()) return rmem::fail(RMEM_EINVAL, rmem::kForkedChild);
        return body(node->client);
    });
}

/// The same where rmem.h promises not to change the node: asking changes the connection alone.
template <class Body>
int on_client(const rmem_node* node, Body&& body) noexcept {
    return on_client(const_cast<rmem_node*>(node), body);
}

/// What the node is, which does not change.
int of_node(const rmem_node* node, std::uint32_t remote::Welcome::*property) {
    return node == nullptr ? rmem::no_node() : static_cast<int>(node->client.node().*property);
}

/// Calls `body` with the client, where there is a word at that offset.
template <class Body>
int on_word(rmem_node* node, std::size_t offset, Body&& body) noexcept {
    return on_client(node, [&](remote::Client& client) {
        const int refused = client.check_word(offset);
        return refused < 0 ? refused : body(client);
    });
}

}  // namespace

namespace remote {

int open_node(rmem_node** node, const Address& address) noexcept {
    *node = nullptr;
    return rmem::guarded([&] {
        *node = new rmem_node{Client(address)};
        return static_cast<int>(RMEM_OK);
    });
}

int map_node(rmem_node* node, std::size_t offset, std::size_t bytes, void** memory) noexcept {
    return on_client(node, [&](Client& client) { return client.map(offset, bytes, memory); });
}

}  // namespace remote

extern "C" {

int rmem_close(rmem_node* node) {
    if (node == nullptr || !node->client.is_inherited()) delete node;
    return RMEM_OK;
}

int rmem_id(const rmem_node* node) {
    return of_node(node, &remote::Welcome::node);
}
int rmem_nodes(const rmem_node* node) {
    return of_node(node, &remote::Welcome::nodes);
}
int rmem_rank(const rmem_node* node) {
    return of_node(node, &remote::Welcome::rank);
}
int rmem_ranks(const rmem_node* node) {
    return of_node(node, &remote::Welcome::ranks);
}
size_t rmem_size(const rmem_node* node) {
    return node == nullptr ? 0 : node->client.node().memory_bytes;
}
int rmem_is_alive(const rmem_node* node, int rank) {
    return on_client(node, [&](remote::Client& client) {
        return client.is_there(remote::Kind::is_alive, rank);
    });
}
int rmem_is_present(const rmem_node* node, int other) {
    return on_client(node, [&](remote::Client& client) {
        return client.is_there(remote::Kind::is_present, other);
    });
}
int rmem_is_member(const rmem_node* node) {
    const int code = on_client(node, [](remote::Client& client) { return client.is_member(); });
    return code == RMEM_EPEER ? 0 : code;
}
int rmem_counter(const rmem_node* node, const char* name, uint64_t* value) {
    if (name == nullptr) return rmem::no_place("the counter's name");
    if (value == nullptr) return rmem::no_place("the counter's value");
    return on_client(node, [&](remote::Client& client) { return client.counter(name, *value); });
}

uint32_t rmem_load(rmem_node* node, size_t offset) {
    std::uint32_t word = 0;
    const int code = on_word(node, offset, [&](remote::Client& client) {
        return client.read(offset, std::as_writable_bytes(std::span(&word, 1)));
    });
    return code < 0 ? 0 : word;
}
int rmem_read(rmem_node* node, size_t offset, void* to, size_t bytes) {
    if (to == nullptr && bytes != 0) return rmem::no_place("what is read");
    return on_client(node, [&](remote::Client& client) {
        return client.read(offset, {static_cast<std::byte*>(to), bytes});
    });
}
int rmem_write(rmem_node* node, size_t offset, const void* from, size_t bytes) {
    if (from == nullptr && bytes != 0) return rmem::no_place("what is written");
    return on_client(node, [&](remote::Client& client) {
        return client.write(offset, {static_cast<const std::byte*>(from), bytes});
    });
}
int rmem_write_word(rmem_node* node, size_t offset, uint32_t value) {
    return on_word(node, offset, [&](remote::Client& client) {
        return client.write(offset, std::as_bytes(std::span(&value, 1)));
    });
}
int rmem_write_part(rmem_node* node, size_t offset, uint32_t value, unsigned bytes) {
    return on_word(node, offset, [&](remote::Client& client) {
        if (bytes > rmem::kWholeWord) {
            return rmem::fail(RMEM_EINVAL,
                              "more bytes than a word has; give a bit for each, at most 0xf");
        }
        const auto part = static_cast<rmem::WordPart>(bytes);
        if (part == 0) return static_cast<int>(RMEM_OK);
        return client.write(offset, std::as_bytes(std::span(&value, 1)), part);
    });
}
int rmem_flush(rmem_node* node, int64_t timeout_ns) {
    return on_client(node, [&](remote::Client& client) { return client.flush(timeout_ns); });
}
int rmem_poll(rmem_node* node) {
    return on_client(node, [](remote::Client& client) { return client.state(); });
}

int rmem_send_interrupt(rmem_node* node, int to, unsigned number, uint32_t value) {
    return on_client(
        node, [&](remote::Client& client) { return client.send_interrupt(to, number, value); });
}
int rmem_accept_interrupts(rmem_node* node, uint64_t numbers) {
    return on_client(node,
                     [&](remote::Client& client) { return client.accept_interrupts(numbers); });
}
int rmem_next_interrupt(rmem_node* node, rmem_interrupt* interrupt, int64_t timeout_ns) {
    if (interrupt == nullptr) return rmem::no_place("the interrupt");
    return on_client(node, [&](remote::Client& client) {
        return client.next_interrupt(*interrupt, timeout_ns);
    });
}
int rmem_on_interrupt(rmem_node* node, void (*function)(void*, const rmem_interrupt*), void* with) {
    return on_client(node,
                     [&](remote::Client& client) { return client.on_interrupt(function, with); });
}
int rmem_interrupt_fd(rmem_node* node) {
    return on_client(node, [](remote::Client&) {
        return rmem::fail(RMEM_ESYS, "a node elsewhere has no descriptor; wait for its interrupts");
    });
}

const char* rmem_last_error(void) {
    return rmem::last_error();
}

}  // extern "C"
