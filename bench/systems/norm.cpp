// SPDX-License-Identifier: Apache-2.0
//
// NORM (RFC 5740): each rank sends a stream to the group and receives the other's.
#include "bench/harness/harness.hpp"

#include <normApi.h>

namespace {

using namespace bench;

constexpr const char* group = "239.1.2.10";
constexpr unsigned buffer_bytes = 4U << 20U;
constexpr UINT16 segment_bytes = 1400;
constexpr double round_trip_s = 1e-4;

class NormChannel : Unique {
public:
    NormChannel(int rank, const Setup& setup, std::uint16_t port)
        : instance_(NormCreateInstance()) {
        require(instance_ != NORM_INSTANCE_INVALID, "NormCreateInstance failed");
        session_ = NormCreateSession(instance_, group, port, NormNodeId(rank + 1));
        require(session_ != NORM_SESSION_INVALID, "NormCreateSession failed");
        // Both ranks may be on one host, and share the port then.
        NormSetRxPortReuse(session_, true);
        NormSetMulticastLoopback(session_, true);
        require(NormSetMulticastInterface(session_, setup.interface.c_str()), "no interface");
        NormSetTxRate(session_, 10e9);
        NormSetGrttEstimate(session_, round_trip_s);
        NormSetGrttMax(session_, 10 * round_trip_s);
        NormSetGrttProbingMode(session_, NORM_PROBE_NONE);
        NormSetBackoffFactor(session_, 0);  // nobody else would ask for the same
        require(NormStartReceiver(session_, buffer_bytes), "NormStartReceiver failed");
        require(
            NormStartSender(session_, NormSessionId(rank + 1), buffer_bytes, segment_bytes, 16, 0),
            "NormStartSender failed");
        out_ = NormStreamOpen(session_, buffer_bytes);
        require(out_ != NORM_OBJECT_INVALID, "NormStreamOpen failed");
        NormStreamSetPushEnable(out_, true);
    }
    ~NormChannel() { NormDestroyInstance(instance_); }

    void send(const void* data, std::size_t size) {
        const char* bytes = static_cast<const char*>(data);
        for (std::size_t sent = 0; sent < size;) {
            sent += NormStreamWrite(out_, bytes + sent, unsigned(size - sent));
            take_events();
        }
        NormStreamFlush(out_, true, NORM_FLUSH_ACTIVE);
    }
    /// Yields between polls: NORM's own thread needs this CPU.
    void receive(void* data, std::size_t size) {
        char* bytes = static_cast<char*>(data);
        for (std::size_t got = 0; got < size;) {
            take_events();
            unsigned count = unsigned(size - got);
            if (in_ != NORM_OBJECT_INVALID) {
                require(NormStreamRead(in_, bytes + got, &count), "the stream broke");
                got += count;
                if (count > 0) continue;
            }
            sched_yield();
        }
    }

private:
    void take_events() {
        NormEvent event;
        while (NormGetNextEvent(instance_, &event, false)) {
            if (event.type == NORM_EVENT_INVALID) return;
            if (event.type == NORM_RX_OBJECT_NEW) in_ = event.object;
        }
    }

    NormInstanceHandle instance_;
    NormSessionHandle session_ = NORM_SESSION_INVALID;
    NormObjectHandle out_ = NORM_OBJECT_INVALID, in_ = NORM_OBJECT_INVALID;
};

}  // namespace

int bench::measure(const Setup& setup) {
    const std::uint16_t port = Setup::some_port();
    return measure_ranks(setup, [&](int rank, Meeting&) { return NormChannel(rank, setup, port); });
}
