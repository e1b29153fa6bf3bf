// SPDX-License-Identifier: Apache-2.0
// The C functions of fm2.h. It names these FM_begin_message and so on.
#include "ports/fm/current.hpp"

#include "billboard/errors.hpp"

#include <fmt/format.h>
#include <sys/single_threaded.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>

using ports::fm::current;
using ports::fm::refuse;
using ports::fm::Runtime;

namespace {

using Held = ports::fm::Fm2::Held;

[[gnu::noinline]] void share(Runtime& runtime) {
    std::call_once(runtime.is_shared, [&] { runtime.process->share(); });
}

/// Held for a call; from the first call after a second thread was started on, by a lock.
[[gnu::always_inline]] inline Held hold(Runtime& runtime) {
    if (__libc_single_threaded == 0) [[unlikely]]
        share(runtime);
    return runtime.process->hold();
}

/// Sets errno, and keeps a sentence for an error of a stream.
void failed(const ports::fm::KeptErrno& kept, int error) {
    kept.fail(error);
    const auto refuse = [](int, int code, const char* sentence) {
        billboard::fail(code, sentence);
    };
    switch (error) {
        case EINVAL:
            return refuse(
                error, BBP_EINVAL,
                "the stream is not one of a message under way, or the piece is a null pointer");
        case EMSGSIZE:
            return refuse(
                error, BBP_ESIZE,
                "the piece would make the message longer than was announced to FM_begin_message");
        case EBUSY:
            return refuse(error, BBP_EAGAIN,
                          "another thread is sending a message; try again when it has ended it");
        case EAGAIN:
            return refuse(error, BBP_EAGAIN,
                          "no room for the message without waiting, which a handler may not; try "
                          "again after it "
                          "has returned");
        default: return;  // the billboard has said it
    }
}

/// For a message with an id that no node can have registered.
constexpr ULONG kMaxId = ports::fm::kMaxHandlers - 1;

[[gnu::noinline]] FM_stream* begin(ULONG recipient, ULONG length, ULONG handler, bool may_wait) {
    Runtime* const runtime = current.runtime.get();
    if (runtime == nullptr) {
        ports::fm::not_initialized();
        return nullptr;
    }
    if (recipient >= runtime->network.nodes() || handler > kMaxId) [[unlikely]] {
        refuse(EINVAL, BBP_ERANK,
               handler > kMaxId
                   ? fmt::format("there is no handler with id {}; ids are 0 to {}", handler, kMaxId)
                   : fmt::format("there is no node {}; this ring has 0 to {}", recipient,
                                 runtime->network.nodes() - 1));
        return nullptr;
    }
    const ports::fm::KeptErrno kept;
    auto held = hold(*runtime);
    int error = 0;
    FM_stream* const stream = runtime->fm2.begin(held, static_cast<unsigned>(recipient), length,
                                                 handler, error, may_wait);
    if (stream != nullptr) [[likely]]
        return stream;
    // A caller that tries again and again needs no sentence.
    if (error == EAGAIN && !may_wait) {
        kept.fail(error);
    } else {
        failed(kept, error);
    }
    return nullptr;
}

[[gnu::noinline]] void write_slowly(Runtime& runtime, Held& held, FM_stream* stream,
                                    const void* buffer, ULONG length) {
    const ports::fm::KeptErrno kept;
    if (const int error = runtime.fm2.write(held, stream, buffer, length)) failed(kept, error);
}

[[gnu::noinline]] void end_slowly(Runtime& runtime, Held& held, FM_stream* stream) {
    const ports::fm::KeptErrno kept;
    if (const int error = runtime.fm2.end(held, stream)) failed(kept, error);
}

}  // namespace

extern "C" {

FM_API ULONG FM2_register_handler(ULONG id, FM_handler* handler) {
    auto& table = current.handlers;
    const std::size_t most = current.parameters.max_handlers;
    if (id == FM_ANY_ID) {
        const auto unused = std::find(table.begin(), table.end(), nullptr);
        id = static_cast<ULONG>(unused - table.begin());
    }
    if (handler == nullptr || id >= most) {
        refuse(EINVAL, BBP_EINVAL,
               handler == nullptr
                   ? std::string("the handler is a null pointer")
                   : fmt::format("there is no handler id {}; ids are 0 to {} (FM_MAX_HANDLERS)", id,
                                 most - 1));
        return FM_ANY_ID;
    }
    std::optional<Held> held;
    if (current.runtime) held.emplace(*current.runtime->process);
    if (table.size() <= id) table.resize(id + 1);
    table[id] = handler;
    return id;
}

FM_API void FM2_reallocate_credit(void) {
    if (!current.runtime) return ports::fm::not_initialized();
    const auto held = hold(*current.runtime);
    current.runtime->fm2.reallocate();
}

FM_API FM_stream* FM2_begin_message(ULONG recipient, ULONG length, ULONG handler) {
    if (Runtime* const runtime = current.runtime.get();
        runtime != nullptr && recipient < runtime->network.nodes() && handler <= kMaxId)
        [[likely]] {
        const auto held = hold(*runtime);
        FM_stream* const stream =
            runtime->fm2.try_begin(static_cast<unsigned>(recipient), length, handler);
        if (stream != nullptr) [[likely]]
            return stream;
    }
    return begin(recipient, length, handler, true);
}

FM_API FM_stream* FM2_try_begin_message(ULONG recipient, ULONG length, ULONG handler) {
    return begin(recipient, length, handler, false);
}

FM_API ULONG FM2_packet_bytes(void) {
    return current.runtime ? current.runtime->fm2.packet_payload() : 0;
}

FM_API ULONG FM2_packets_kept(void) {
    if (!current.runtime) return 0;
    const auto held = hold(*current.runtime);
    return current.runtime->fm2.kept();
}

FM_API void FM2_send_piece(FM_stream* stream, void* buffer, ULONG length) {
    Runtime* const runtime = current.runtime.get();
    if (runtime == nullptr) return ports::fm::not_initialized();
    auto held = hold(*runtime);
    if (runtime->fm2.try_write(stream, buffer, length)) [[likely]]
        return;
    write_slowly(*runtime, held, stream, buffer, length);
}

FM_API void FM2_end_message(FM_stream* stream) {
    Runtime* const runtime = current.runtime.get();
    if (runtime == nullptr) return ports::fm::not_initialized();
    auto held = hold(*runtime);
    if (runtime->fm2.try_end(stream)) [[likely]]
        return;
    end_slowly(*runtime, held, stream);
}

int FM2_extract(ULONG maxbytes) {
    Runtime* const runtime = current.runtime.get();
    if (runtime == nullptr) {
        ports::fm::not_initialized();
        return -1;
    }
    const auto held = hold(*runtime);
    const std::size_t bytes = runtime->fm2.extract(maxbytes);
    return ports::fm::extracted(
        *runtime, static_cast<int>(std::min<std::size_t>(bytes, std::numeric_limits<int>::max())));
}

// Only a handler calls it, from within a call that holds the endpoint; it may go on in another
// thread.
FM_API void FM2_receive(void* buffer, FM_stream* stream, unsigned length) {
    Runtime* const runtime = current.runtime.get();
    if (runtime == nullptr) return ports::fm::not_initialized();
    if (buffer == nullptr && length != 0)
        return refuse(EINVAL, BBP_EINVAL, "the buffer is a null pointer");
    const int missing = runtime->fm2.receive(stream, buffer, length);
    if (missing == 0) return;
    if (missing < 0)
        return refuse(EINVAL, BBP_EINVAL,
                      "only the handler that runs receives, and of its own stream");
    refuse(
        ENODATA, BBP_EINVAL,
        fmt::format("the message has ended {} bytes before what its handler asked for", missing));
}

}  // extern "C"
