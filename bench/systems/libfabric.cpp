// SPDX-License-Identifier: Apache-2.0
//
// A provider of libfabric's, by variant: FI_MSG on a reliable datagram endpoint, completion queues
// polled.
#include "bench/harness/harness.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

namespace {

using namespace bench;

void check(ssize_t result, const char* what) {
    require(result >= 0, what, [&] { return fi_strerror(int(-result)); });
}

/// Of shm the endpoint's name is that of its shared memory object; one of ours is known by it if
/// killed.
std::string source_of(const Setup& setup, int rank) {
    if (setup.variant != "shm") return setup.addresses[std::size_t(rank)];
    return "bench-fabric-" + std::to_string(rank) + "-" + std::to_string(getpid());
}

fi_info* find_endpoint(const Setup& setup, int rank) {
    fi_info* hints = fi_allocinfo();
    hints->caps = FI_MSG;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->fabric_attr->prov_name = strdup(setup.variant.c_str());
    fi_info* info = nullptr;
    const int result = fi_getinfo(FI_VERSION(1, 17), source_of(setup, rank).c_str(), nullptr,
                                  FI_SOURCE, hints, &info);
    fi_freeinfo(hints);
    if (result == -FI_ENODATA) throw Unavailable("libfabric has no such provider");
    check(result, "fi_getinfo");
    return info;
}

class FabricChannel : Unique {
public:
    FabricChannel(const Setup& setup, int rank, Meeting& meeting)
        : info_(find_endpoint(setup, rank)) {
        check(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
        check(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
        fi_av_attr vector{};
        vector.type = FI_AV_TABLE;
        check(fi_av_open(domain_, &vector, &addresses_, nullptr), "fi_av_open");
        open_endpoint();
        const std::string theirs = meeting.exchange(rank, own_name());
        require(fi_av_insert(addresses_, theirs.data(), 1, &peer_, 0, nullptr) == 1,
                "fi_av_insert");
    }
    ~FabricChannel() {
        for (fid* each : {&endpoint_->fid, &sent_->fid, &received_->fid, &addresses_->fid,
                          &domain_->fid, &fabric_->fid})
            fi_close(each);
        fi_freeinfo(info_);
    }

    void send(const void* data, std::size_t size) {
        post_send(data, size);
        finish_sends();
    }

    void receive(void* data, std::size_t size) {
        insist([&] { return fi_recv(endpoint_, data, size, nullptr, peer_, nullptr); }, "fi_recv");
        reap(received_);
    }

    /// Small messages are injected: the buffer is free at once and there is no completion to reap.
    void post_send(const void* data, std::size_t size) {
        if (size <= info_->tx_attr->inject_size)
            return insist([&] { return fi_inject(endpoint_, data, size, peer_); }, "fi_inject");
        insist([&] { return fi_send(endpoint_, data, size, nullptr, peer_, nullptr); }, "fi_send");
        ++in_flight_;
    }
    void finish_sends() {
        for (; in_flight_ > 0; --in_flight_) reap(sent_);
    }

private:
    fid_cq* open_queue(std::uint64_t direction) {
        fi_cq_attr attributes{};
        attributes.format = FI_CQ_FORMAT_CONTEXT;
        attributes.wait_obj = FI_WAIT_NONE;
        fid_cq* queue = nullptr;
        check(fi_cq_open(domain_, &attributes, &queue, nullptr), "fi_cq_open");
        check(fi_ep_bind(endpoint_, &queue->fid, direction), "fi_ep_bind");
        return queue;
    }

    void open_endpoint() {
        check(fi_endpoint(domain_, info_, &endpoint_, nullptr), "fi_endpoint");
        check(fi_ep_bind(endpoint_, &addresses_->fid, 0), "fi_ep_bind");
        sent_ = open_queue(FI_TRANSMIT);
        received_ = open_queue(FI_RECV);
        check(fi_enable(endpoint_), "fi_enable");
    }

    std::string own_name() {
        std::string name(512, '\0');
        std::size_t size = name.size();
        check(fi_getname(&endpoint_->fid, name.data(), &size), "fi_getname");
        name.resize(size);
        return name;
    }

    /// -FI_EAGAIN asks for progress, which polling a completion queue makes.
    template <class Operation>
    void insist(Operation&& op, const char* what) {
        ssize_t result;
        while ((result = op()) == -FI_EAGAIN) fi_cq_read(received_, nullptr, 0);
        check(result, what);
    }

    static void reap(fid_cq* queue) {
        fi_cq_entry entry;
        ssize_t result;
        while ((result = fi_cq_read(queue, &entry, 1)) == -FI_EAGAIN) {
        }
        check(result, "fi_cq_read");
    }

    fi_info* info_;
    fid_fabric* fabric_ = nullptr;
    fid_domain* domain_ = nullptr;
    fid_av* addresses_ = nullptr;
    fid_ep* endpoint_ = nullptr;
    fid_cq* sent_ = nullptr;
    fid_cq* received_ = nullptr;
    fi_addr_t peer_ = FI_ADDR_UNSPEC;
    std::size_t in_flight_ = 0;
};

}  // namespace

int bench::measure(const Setup& setup) {
    return measure_ranks(
        setup, [&](int rank, Meeting& meeting) { return FabricChannel(setup, rank, meeting); });
}
