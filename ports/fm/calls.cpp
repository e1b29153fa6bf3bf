// SPDX-License-Identifier: Apache-2.0
// The C functions of fm.h and fm1.h.
#include "ports/fm/current.hpp"

#include "billboard/errors.hpp"
#include "ports/fm/fm1.h"
#include "rmem/base/at_fork.hpp"
#include "rmem/base/process_state.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

using ports::fm::current;
using ports::fm::Kind;
using ports::fm::Runtime;

ULONG FM_nodeid = 0;
ULONG FM_numnodes = 0;

namespace ports::fm {

Current current;

namespace {

[[maybe_unused]] const bool registered = rmem::sim::exchanges<current, FM_nodeid, FM_numnodes>();

/// In a forked child the calls find no runtime. That of the parent is kept, and never touched.
class Child final : rmem::AtFork {
public:
    bool is_one = false;  ///< forked by a node, and none since

private:
    void in_child() noexcept override {
        is_one |= current.runtime != nullptr;
        static_cast<void>(current.runtime.release());
    }
};
Child child;

int error_of(int code) {
    switch (code) {
        case BBP_EINVAL:
        case BBP_ERANK: return EINVAL;
        case BBP_ETIMEDOUT: return ETIMEDOUT;
        case BBP_ENOMEM: return ENOMEM;
        case BBP_EVERSION: return EPROTO;
        case BBP_EBUSY: return EADDRINUSE;
        default: return EIO;
    }
}

void set(int parameter, std::va_list values) {
    Parameters& p = current.parameters;
    const auto bounded = [&](unsigned& to, int most) {
        const int value = va_arg(values, int);
        if (value >= 1 && value <= most) {
            to = static_cast<unsigned>(value);
            return;
        }
        refuse(EINVAL, BBP_EINVAL,
               fmt::format("FM_set_parameter: parameter {} is {}; it must be 1 to {}", parameter,
                           value, most));
    };
    switch (parameter) {
        case FM_QUIET: p.is_quiet = true; break;
        case FM_MAX_HANDLERS: bounded(p.max_handlers, kMaxHandlers); break;
        case FM_REJECT_QUEUE: bounded(p.fm1.slots, Fm1::kMaxSlots); break;
        case FM_HOST_RECEIVE_QUEUE: bounded(p.fm1.queue, Fm1::kMaxQueue); break;
        case FM_GRM_NAME:
        case FM_GRM_PORT:
        case FM_CM_PORT:
        case FM_KEY_NAME: break;  // the environment says where to meet
        default:
            refuse(EINVAL, BBP_EINVAL,
                   fmt::format("FM_set_parameter: there is no parameter {}; <fm/fm.h> lists them",
                               parameter));
    }
}

}  // namespace

void refuse(int error, int code, const std::string& sentence) {
    billboard::fail(code, sentence);
    errno = error;
}

void not_initialized() {
    refuse(ENOTCONN, BBP_EINVAL,
           child.is_one ? rmem::kForkedChild
                        : "this process does not take part; call FM_initialize first");
}

int untold_end(Runtime& runtime) {
    if (!runtime.network.has_untold_end()) return 0;
    errno = EHOSTDOWN;
    return -1;
}

}  // namespace ports::fm

namespace {

/// The expected case, in which the system is not asked for anything.
[[gnu::always_inline]] inline bool try_send(int dest, Kind kind, const void* handler,
                                            const void* payload, std::size_t size) {
    Runtime* const runtime = current.runtime.get();
    if (runtime == nullptr) [[unlikely]]
        return false;
    const auto held = runtime->process->hold();
    return runtime->fm1.try_send(static_cast<unsigned>(dest), kind, handler, payload, size);
}

[[gnu::noinline]] void send(int dest, Kind kind, const void* handler, const void* payload,
                            std::size_t size) {
    Runtime* const runtime = current.runtime.get();
    if (runtime == nullptr) return ports::fm::not_initialized();
    const ports::fm::KeptErrno errno_before;
    auto held = runtime->process->hold();
    if (const int error =
            runtime->fm1.send(held, static_cast<unsigned>(dest), kind, handler, payload, size))
        errno_before.fail(error);
}

}  // namespace

extern "C" {

void FM_set_parameter(int parameter, ...) {
    if (current.runtime) {
        return ports::fm::refuse(EISCONN, BBP_EINVAL,
                                 "FM_set_parameter was called after FM_initialize; call it before");
    }
    std::va_list values;
    va_start(values, parameter);
    ports::fm::set(parameter, values);
    va_end(values);
}

void FM_initialize(void) {
    if (current.runtime) {
        return ports::fm::refuse(EISCONN, BBP_EINVAL,
                                 "FM_initialize was called before; call FM_finalize first");
    }
    const ports::fm::KeptErrno kept;
    const int result = billboard::guarded([] {
        current.runtime = std::make_unique<Runtime>(current.parameters, current.handlers);
        ports::fm::child.is_one = false;
        FM_nodeid = current.runtime->network.me();
        FM_numnodes = current.runtime->network.nodes();
        return static_cast<int>(BBP_OK);
    });
    if (result == BBP_OK) return;
    if (!current.parameters.is_quiet) std::fprintf(stderr, "FM: %s\n", billboard::last_error());
    kept.fail(ports::fm::error_of(result));
}

void FM_finalize(void) {
    if (!current.runtime) return ports::fm::not_initialized();
    if (current.runtime->network.handlers != 0) {
        return ports::fm::refuse(EBUSY, BBP_EINVAL,
                                 "a handler cannot end what has called it: FM_finalize");
    }
    const ports::fm::KeptErrno kept;
    current.runtime->leave();
    current.runtime.reset();
    FM_nodeid = FM_numnodes = 0;
}

int FM_version(void) {
    return FM_VERSION;
}

long long FM_count(ULONG node, enum FM_counter counter) {
    if (!current.runtime || static_cast<unsigned>(counter) >= FM_COUNTERS) return -1;
    ports::fm::Network& network = current.runtime->network;
    if (node == network.me()) return static_cast<long long>(network.counts().get(counter));
    if (node >= network.nodes()) return -1;
    const rmem::PortCounters* const block =
        ports::counters_of(*network.endpoint(), billboard::Class::fm, static_cast<unsigned>(node));
    return block == nullptr ? -1 : static_cast<long long>(block->get(counter));
}

// ---- FM 1.0. The headers name these FM_send_4 and so on.

FM_API void FM1_send_4(int dest, void (*handler)(int, int, int, int), int i0, int i1, int i2,
                       int i3) {
    const int words[] = {i0, i1, i2, i3};
    const auto* const code = reinterpret_cast<const void*>(handler);
    if (!try_send(dest, Kind::four, code, words, sizeof words)) [[unlikely]]
        send(dest, Kind::four, code, words, sizeof words);
}

FM_API void FM1_send(int dest, void (*handler)(void*, int), void* buf, int size) {
    const auto* const code = reinterpret_cast<const void*>(handler);
    const auto bytes = static_cast<std::size_t>(size);  // a negative one is too large
    if ((buf == nullptr && size != 0) || !try_send(dest, Kind::buffer, code, buf, bytes))
        send(dest, Kind::buffer, code, buf, bytes);
}

int FM1_extract(void) {
    Runtime* const runtime = current.runtime.get();
    if (runtime == nullptr) {
        ports::fm::not_initialized();
        return -1;
    }
    const auto held = runtime->process->hold();
    return ports::fm::extracted(*runtime, runtime->fm1.extract());
}

}  // extern "C"
