// SPDX-License-Identifier: Apache-2.0
//
// UCX: tagged messages of UCP; UCX_TLS in the environment chooses shared memory.
#include "method.hpp"

#include <ucp/api/ucp.h>

namespace {

using namespace rivals;

constexpr ucp_tag_t tag = 1;
constexpr ucp_tag_t whole_tag = ~ucp_tag_t{0};

void check(ucs_status_t status, const char* what) {
    require(status == UCS_OK, std::string(what) + ": " + ucs_status_string(status));
}

ucp_context_h create_context() {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    ucp_context_h context;
    check(ucp_init(&params, nullptr, &context), "ucp_init");
    return context;
}

ucp_worker_h create_worker(ucp_context_h context) {
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SINGLE;
    ucp_worker_h worker;
    check(ucp_worker_create(context, &params, &worker), "ucp_worker_create");
    return worker;
}

std::string address_of(ucp_worker_h worker) {
    ucp_address_t* address;
    std::size_t size;
    check(ucp_worker_get_address(worker, &address, &size), "ucp_worker_get_address");
    std::string bytes(reinterpret_cast<const char*>(address), size);
    ucp_worker_release_address(worker, address);
    return bytes;
}

ucp_ep_h connect(ucp_worker_h worker, const std::string& address) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    ucp_ep_h endpoint;
    check(ucp_ep_create(worker, &params, &endpoint), "ucp_ep_create");
    return endpoint;
}

class UcxChannel {
public:
    UcxChannel(int rank, Meeting& meeting) : rank_(rank), meeting_(meeting) {
        endpoint_ = connect(worker_, meeting.exchange(rank, address_of(worker_)));
    }
    ~UcxChannel() {
        const ucp_request_param_t param{};
        wait(ucp_ep_close_nbx(endpoint_, &param));
        meeting_.wait_for_other(rank_);
        ucp_worker_destroy(worker_);
        ucp_cleanup(context_);
    }
    UcxChannel(const UcxChannel&) = delete;
    UcxChannel& operator=(const UcxChannel&) = delete;

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

    int rank_;
    Meeting& meeting_;
    ucp_context_h context_ = create_context();
    ucp_worker_h worker_ = create_worker(context_);
    ucp_ep_h endpoint_ = nullptr;
    ucp_request_param_t plain_{};
    std::vector<ucs_status_ptr_t> sends_, receives_;
};

int measure(const Options& options) {
    const System system{"ucx", ucp_get_version_string()};
    return measure_pair(system, options,
                        [](int rank, Meeting& meeting) { return UcxChannel(rank, meeting); });
}

}  // namespace

int main(int argc, char** argv) {
    return guarded(
        "ucx", [&] { return measure(parse_options(argc, argv, "UCX: tagged messages of UCP")); });
}
