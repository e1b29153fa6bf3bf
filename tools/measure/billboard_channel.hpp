// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The billboard's calls between ranks that have joined, as a Channel (tools/measure/rhythms.hpp).
/// Thread safety: as bbp.h. Errors: `rmem::Error`.

#include "billboard/bbp.h"
#include "rmem/error.hpp"
#include "tools/measure/rhythms.hpp"

#include <numeric>
#include <string>
#include <vector>

namespace tools {

/// Throws what bbp_last_error says when `result` is a failure; gives it back otherwise.
inline int checked(int result) {
    if (result >= 0) [[likely]]
        return result;
    // A sentence of setting up ends with its name in brackets already.
    const std::string said = bbp_last_error();
    throw rmem::Error(rmem::Errc::system, said.ends_with(']')
                                              ? said.substr(0, said.rfind(" ["))
                                              : said + " (" + bbp_strerror(result) + ")");
}

class BillboardChannel {
public:
    BillboardChannel(int rank, int ranks)
        : rank_(rank), other_(rank == 0 ? 1 : 0), others_(std::size_t(ranks) - 1) {
        std::iota(others_.begin(), others_.end(), 1);
    }

    void send(const void* data, std::size_t size) { send_to(other_, data, size); }
    bool try_send(const void* data, std::size_t size) { return try_send_to(other_, data, size); }
    void receive(void* data, std::size_t size) { checked(bbp_recv(other_, data, size, nullptr)); }
    template <class Look>
    void receive_view(std::size_t, Look&& look) {
        const void* data = nullptr;
        std::size_t size = 0;
        checked(bbp_view(other_, &data, &size));
        look(data);
        checked(bbp_release(data));
    }
    void send_to(int rank, const void* data, std::size_t size) {
        checked(bbp_send(rank, data, size));
    }
    bool try_send_to(int rank, const void* data, std::size_t size) {
        return is_done(bbp_trysend(rank, data, size));
    }
    void receive_any(void* data, std::size_t size) {
        checked(bbp_recv(BBP_ANY, data, size, nullptr));
    }
    bool try_receive_any(void* data, std::size_t size) {
        return is_done(bbp_tryrecv(BBP_ANY, data, size, nullptr));
    }
    void multicast(void* data, std::size_t size) {
        if (rank_ == 0)
            checked(bbp_mcast(others_.data(), int(others_.size()), data, size));
        else
            checked(bbp_recv(0, data, size, nullptr));
    }
    /// So that further ranks wait as ranks do.
    void share(std::uint64_t& word) { multicast(&word, sizeof word); }
    static void barrier() { checked(bbp_barrier()); }

private:
    static bool is_done(int result) { return result != BBP_EAGAIN && checked(result) >= 0; }

    int rank_, other_;
    std::vector<int> others_;
};

}  // namespace tools
