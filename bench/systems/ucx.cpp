// SPDX-License-Identifier: Apache-2.0
//
// UCX: tagged messages of UCP; UCX_TLS in the environment chooses shared memory.
#include "bench/harness/harness.hpp"

#include <ucp/api/ucp.h>

namespace {

using namespace bench;

constexpr ucp_tag_t tag = 1;
constexpr ucp_tag_t whole_tag = ~ucp_tag_t{0};

void check(ucs_status_t status, const char* what) {
    require(status == UCS_OK, what, [&] { return ucs_status_string(status); });
}

class UcxChannel : Unique {
public:
    UcxChannel(int rank, Meeting& meeting) : meeting_(meeting) {
        ucp_params_t params{};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_TAG;
        check(ucp_init(&params, nullptr, &context_), "ucp_init");
        ucp_worker_params_t threads{};
        threads.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        threads.thread_mode = UCS_THREAD_MODE_SINGLE;
        check(ucp_worker_create(context_, &threads, &worker_), "ucp_worker_create");
        ucp_address_t* own = nullptr;
        std::size_t size = 0;
        check(ucp_worker_get_address(worker_, &own, &size), "ucp_worker_get_address");
        const std::string theirs =
            meeting.exchange(rank, std::string(reinterpret_cast<const char*>(own), size));
        ucp_worker_release_address(worker_, own);
        ucp_ep_params_t peer{};
        peer.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        peer.address = reinterpret_cast<const ucp_address_t*>(theirs.data());
        check(ucp_ep_create(worker_, &peer, &endpoint_), "ucp_ep_create");
    }
    ~UcxChannel() {
        const ucp_request_param_t param{};
        wait(ucp_ep_close_nbx(endpoint_, &param));
        meeting_.meet();
        ucp_worker_destroy(worker_);
        ucp_cleanup(context_);
    }

    void send(const void* data, std::size_t size) {
        wait(ucp_tag_send_nbx(endpoint_, data, size, tag, &plain_));
    }
    void receive(void* data, std::size_t size) {
        wait(ucp_tag_recv_nbx(worker_, data, size, tag, whole_tag, &plain_));
    }
    void post_send(const void* data, std::size_t size) {
        sends_.push_back(ucp_tag_send_nbx(endpoint_, data, size, tag, &plain_));
    }
    void finish_sends() {
        for (ucs_status_ptr_t request : sends_) wait(request);
        sends_.clear();
    }
    void post_receive(void* data, std::size_t size) {
        receives_.push_back(ucp_tag_recv_nbx(worker_, data, size, tag, whole_tag, &plain_));
    }
    void finish_receives() {
        for (ucs_status_ptr_t request : receives_) wait(request);
        receives_.clear();
    }

private:
    void wait(ucs_status_ptr_t request) {
        if (request == nullptr) return;
        check(UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK, "ucp request");
        while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
        check(ucp_request_check_status(request), "ucp request");
        ucp_request_free(request);
    }

    Meeting& meeting_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_ep_h endpoint_ = nullptr;
    ucp_request_param_t plain_{};
    std::vector<ucs_status_ptr_t> sends_, receives_;
};

}  // namespace

int bench::measure(const Setup& setup) {
    return measure_ranks(setup,
                         [](int rank, Meeting& meeting) { return UcxChannel(rank, meeting); });
}
