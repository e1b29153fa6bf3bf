// SPDX-License-Identifier: Apache-2.0
#include "billboard/process/process_endpoint.hpp"

#include "billboard/process/progress_thread.hpp"
#include "billboard/process/shared_endpoint.hpp"
#include "rmem/base/at_fork.hpp"
#include "rmem/base/process_state.hpp"

#include <algorithm>
#include <utility>

namespace billboard {

namespace {

std::weak_ptr<ProcessEndpoint> opened;

[[maybe_unused]] const bool registered = rmem::sim::exchanges<opened>();

/// A forked child opens its own.
class Child final : rmem::AtFork {
    void in_child() noexcept override { opened.reset(); }
};
[[maybe_unused]] const Child child;

}  // namespace

std::shared_ptr<ProcessEndpoint> ProcessEndpoint::open() {
    const auto process = opened.lock();
    return process ? process : open(Settings::read());
}

std::shared_ptr<ProcessEndpoint> ProcessEndpoint::open(const Settings& settings) {
    auto process = opened.lock();
    if (!process) {
        process = std::make_shared<ProcessEndpoint>(Endpoint::open(settings));
        opened = process;
    }
    return process;
}

ProcessEndpoint::ProcessEndpoint(std::unique_ptr<Endpoint> endpoint)
    : endpoint_(std::move(endpoint)) {}

ProcessEndpoint::~ProcessEndpoint() = default;

Endpoint& ProcessEndpoint::guarded() noexcept {
    if (guarded_) return *guarded_;
    return *endpoint_;
}

void ProcessEndpoint::share() {
    if (shared_) return;
    guarded_ = std::make_unique<SharedEndpoint>(*this);
    lock_.adopt();
    shared_ = true;
    bbp_goes_by(*endpoint_, *guarded_);
}

void ProcessEndpoint::attend(Attendant& attendant) {
    if (endpoint_->ring() == nullptr) return;  // simulated
    endpoint_->set_progress_thread(true);
    share();
    {
        const auto held = hold();
        const std::lock_guard lock(attended_mutex_);
        attended_.push_back({&attendant, attendant.polls()});
        attendant.is_called_by(this);
        is_alone_.set(attended_.size() == 1);
    }
    if (!progress_) progress_ = std::make_unique<ProgressThread>(*this);
}

void ProcessEndpoint::dismiss(Attendant& attendant) {
    bool was_last = false;
    {
        const auto held = enter_as_guest();
        const std::lock_guard lock(attended_mutex_);
        const auto gone =
            std::erase_if(attended_, [&](const Attended& a) { return a.attendant == &attendant; });
        attendant.is_called_by(nullptr);
        is_alone_.set(attended_.size() == 1);
        was_last = gone != 0 && attended_.empty();
    }
    if (!was_last) return;
    progress_.reset();
    endpoint_->set_progress_thread(false);
}

void ProcessEndpoint::send_to_rest() noexcept {
    progress_->send_to_rest();
}

bool ProcessEndpoint::attend_all() {
    bool something = false;
    for (std::size_t i = 0; i < attended_.size(); ++i) {  // an attendant may dismiss itself
        something |= attended_[i].attendant->attend();
    }
    return something;
}

bool ProcessEndpoint::has_new_polls() {
    const std::lock_guard lock(attended_mutex_);
    bool all_polled = true;
    for (Attended& a : attended_) {
        const std::uint32_t polls = a.attendant->polls();
        all_polled &= polls != a.polls_seen || a.attendant->polls_on();
        a.polls_seen = polls;
    }
    return all_polled;
}

}  // namespace billboard
