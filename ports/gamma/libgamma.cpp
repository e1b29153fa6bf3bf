// SPDX-License-Identifier: Apache-2.0
#include "ports/gamma/libgamma.h"

#include "ports/gamma/process.hpp"
#include "rmem/base/at_fork.hpp"
#include "rmem/base/process_state.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

unsigned short gamma_active_port = 0;
long gamma_msglen = 0;
int gamma_errno = 0;

namespace {

using ports::gamma::Binding;
using ports::gamma::fail;
using ports::gamma::Pieces;
using ports::gamma::Process;
using ports::gamma::Service;

std::unique_ptr<Process> current;

[[maybe_unused]] const bool registered =
    rmem::sim::exchanges<current, gamma_active_port, gamma_msglen, gamma_errno>();

/// In a forked child the calls find no process. That of the parent is kept, and never touched.
class Child final : rmem::AtFork {
public:
    bool is_one = false;  ///< forked by a process of GAMMA, and none since

private:
    void in_child() noexcept override {
        is_one |= current != nullptr;
        static_cast<void>(current.release());
    }
};
Child child;

[[gnu::cold]] int not_running() {
    if (child.is_one) return fail(GAMMA_EINVAL, rmem::kForkedChild);
    return fail(GAMMA_EINVAL,
                "this process is in no virtual GAMMA; call gamma_init first, and other functions "
                "only after it has returned 0");
}

template <class Body>
[[gnu::always_inline]] inline int on_process(Body&& body) noexcept {
    if (current == nullptr) [[unlikely]]
        return not_running();
    return billboard::guarded([&] { return body(*current); });
}

int of_errno(const char* call) {
    const int code = errno;
    return fail(
        code == ENOMEM || code == EAGAIN || code == EPERM ? GAMMA_ENOMEM : GAMMA_EINVAL,
        fmt::format("{}: {} (ulimit -l limits what may be locked)", call, std::strerror(code)));
}

int bind(Binding binding, unsigned char kind) {
    if (kind != GO_BACK)
        return fail(GAMMA_EINVAL, fmt::format("there is no kind of buffer {}; give GO_BACK", kind));
    return on_process([&](Process& p) { return p.bind(binding); });
}

}  // namespace

extern "C" {

int gamma_init(unsigned char num_nodes, int argc, char** argv) {
    static_cast<void>(argc);
    static_cast<void>(argv);
    if (current != nullptr)
        return fail(GAMMA_EINVAL,
                    "this process is in a virtual GAMMA already; call gamma_exit first");
    return billboard::guarded([&] {
        const auto settings = ports::gamma::Settings::read();
        current = Process::start(billboard::ProcessEndpoint::open(), num_nodes, settings,
                                 {gamma_active_port, gamma_msglen, gamma_errno});
        child.is_one = false;
        return BBP_OK;
    });
}

int gamma_set_progress(int on) {
    return on_process([&](Process& p) {
        p.set_progress(on != 0);
        return BBP_OK;
    });
}

int gamma_exit(void) {
    const int result = on_process([](Process& p) { return p.prepare_exit(); });
    if (result == BBP_OK) current.reset();
    return result;
}

void gamma_abort(void) {
    std::abort();
}

int gamma_my_par_pid(void) {
    return on_process([](Process& p) { return static_cast<int>(p.par_pid()); });
}
int gamma_my_node(void) {
    return on_process([](Process& p) { return static_cast<int>(p.node()); });
}
int gamma_how_many_nodes(void) {
    return on_process([](Process& p) { return static_cast<int>(p.nodes()); });
}

int gamma_set_active_port(unsigned short port, unsigned short dest_node, unsigned char dest_par_pid,
                          unsigned short dest_port, void (*handler)(void), unsigned short semaphore,
                          unsigned char buffer_kind, void* buffer, unsigned long size) {
    if (handler == nullptr) {
        return fail(GAMMA_EINVAL, fmt::format("the handler of port {} is a null pointer; a port "
                                              "without one is bound by gamma_set_passive_port",
                                              port));
    }
    return bind(
        {port, dest_node, dest_par_pid, dest_port, semaphore, handler, nullptr, buffer, size},
        buffer_kind);
}

int gamma_set_passive_port(unsigned short port, unsigned short dest_node,
                           unsigned char dest_par_pid, unsigned short dest_port,
                           unsigned short semaphore, unsigned char buffer_kind, void* buffer,
                           unsigned long size) {
    return bind(
        {port, dest_node, dest_par_pid, dest_port, semaphore, nullptr, nullptr, buffer, size},
        buffer_kind);
}

int gamma_setport(unsigned char port, unsigned char dest_par_pid, int dest_node,
                  unsigned char dest_port, void (*rcv_handler)(void), void (*err_handler)(void),
                  void* buffer, int size) {
    if (dest_node < 0 || size < 0) {
        return fail(
            dest_node < 0 ? GAMMA_ENODE : GAMMA_EINVAL,
            fmt::format("node {} with a buffer of {} bytes is not valid; both must be 0 or more",
                        dest_node, size));
    }
    return bind({port, static_cast<unsigned>(dest_node), dest_par_pid, dest_port, port, rcv_handler,
                 err_handler, buffer, static_cast<std::size_t>(size)},
                GO_BACK);
}

int gamma_set_error_handler(unsigned short port, void (*handler)(void)) {
    return on_process([&](Process& p) { return p.set_error_handler(port, handler); });
}

int gamma_post_recv(unsigned short port, void* buffer, unsigned long size) {
    return on_process([&](Process& p) { return p.post_recv(port, buffer, size); });
}

int gamma_send(unsigned short port, void* buf, unsigned long len) {
    return on_process([&](Process& p) {
        return p.send(port, {buf, len, nullptr, 0}, Service::best_effort);
    });
}
int gamma_send_flowctl(unsigned short port, void* buf, unsigned long len) {
    return on_process([&](Process& p) {
        return p.send(port, {buf, len, nullptr, 0}, Service::flow_controlled);
    });
}
int gamma_send_2p(unsigned short port, void* b1, unsigned long n1, void* b2, unsigned long n2) {
    return on_process([&](Process& p) {
        return p.send(port, {b1, n1, b2, n2}, Service::best_effort);
    });
}
int gamma_send_2p_flowctl(unsigned short port, void* b1, unsigned long n1, void* b2,
                          unsigned long n2) {
    return on_process([&](Process& p) {
        return p.send(port, {b1, n1, b2, n2}, Service::flow_controlled);
    });
}

int gamma_try_send_2p(unsigned short port, void* b1, unsigned long n1, void* b2, unsigned long n2) {
    return on_process([&](Process& p) {
        return p.send(port, {b1, n1, b2, n2}, Service::immediate);
    });
}
int gamma_frame_bytes(void) {
    return on_process([](Process& p) { return static_cast<int>(p.frame_bytes()); });
}

int gamma_wait(unsigned short sem, int n) {
    return on_process([&](Process& p) { return p.wait(sem, n); });
}
int gamma_test(unsigned short sem, int n) {
    return on_process([&](Process& p) { return p.test(sem, n); });
}
int gamma_signal(unsigned short sem) {
    return on_process([&](Process& p) { return p.signal(sem); });
}
int gamma_sigerr(unsigned short sem) {
    return on_process([&](Process& p) { return p.signal_error(sem); });
}

int gamma_sync(void) {
    return on_process([](Process& p) { return p.sync(); });
}

int gamma_atomic(void (*fn)(void)) {
    if (fn == nullptr) return fail(GAMMA_EINVAL, "the function for gamma_atomic is a null pointer");
    return on_process([&](Process& p) { return p.atomically(fn); });
}

int gamma_mlock(void* addr, unsigned long len) {
    return ::mlock(addr, len) == 0 ? 0 : of_errno("mlock");
}
int gamma_munlock(void* addr, unsigned long len) {
    return ::munlock(addr, len) == 0 ? 0 : of_errno("munlock");
}
int gamma_munlockall(void) {
    return ::munlockall() == 0 ? 0 : of_errno("munlockall");
}

gamma_time_t gamma_time(void) {
    return {rmem::program_now_ns()};
}
double gamma_time_diff(gamma_time_t from, gamma_time_t to) {
    return static_cast<double>(to.ns - from.ns) / 1000;
}

int gamma_version(void) {
    return GAMMA_VERSION;
}

const char* gamma_strerror(int code) {
    switch (code) {
        case GAMMA_EAGAIN: return "would wait where it must not";
        case GAMMA_ENODE: return "no such node";
        case GAMMA_EPEER: return "a process that the call needs is dead or has left";
        case GAMMA_EPORT: return "no such port, or it is not bound";
        case GAMMA_ELOST: return "frames were lost";
        case GAMMA_EOVERLONG: return "a message was longer than the port's buffer";
        case GAMMA_ESIGNAL: return "gamma_sigerr was called";
        default: return bbp_strerror(code);
    }
}

const char* gamma_last_error(void) {
    return bbp_last_error();
}

long long gamma_counter(unsigned char par_pid, unsigned short node, const char* name) {
    if (current == nullptr) return not_running();
    const auto& names = ports::gamma::kCounterNames;
    for (unsigned i = 0; name != nullptr && i < names.size(); ++i) {
        if (std::strcmp(names[i].name, name) != 0) continue;
        const std::int64_t value = current->counter(par_pid, node, i);
        if (value >= 0) return value;
        return fail(GAMMA_ENODE, fmt::format("there is no node {} of parallel PID {} on this host",
                                             node, par_pid));
    }
    return fail(GAMMA_EINVAL,
                fmt::format("there is no counter '{}'; see gamma(7)", name == nullptr ? "" : name));
}

}  // extern "C"
