// SPDX-License-Identifier: Apache-2.0
//
// iceoryx: publisher and subscriber in each direction; loaned chunks, written and read in place.
// RouDi, its daemon, must be running.
#include "bench/harness/harness.hpp"

#include <iceoryx_hoofs/log/logmanager.hpp>
#include <iceoryx_posh/popo/untyped_publisher.hpp>
#include <iceoryx_posh/popo/untyped_subscriber.hpp>
#include <iceoryx_posh/runtime/posh_runtime.hpp>
#include <iceoryx_versions.hpp>

namespace {

using namespace bench;

std::string own_name(int rank) {
    return "bench-iceoryx-" + std::to_string(rank) + "-" + std::to_string(getpid());
}

/// Nothing may be lost: a publisher that finds the queue full waits, as all others here do.
iox::popo::PublisherOptions lossless_publisher() {
    iox::popo::PublisherOptions options;
    options.subscriberTooSlowPolicy = iox::popo::ConsumerTooSlowPolicy::WAIT_FOR_CONSUMER;
    return options;
}

iox::popo::SubscriberOptions lossless_subscriber() {
    iox::popo::SubscriberOptions options;
    options.queueCapacity = 4;
    options.queueFullPolicy = iox::popo::QueueFullPolicy::BLOCK_PRODUCER;
    return options;
}

iox::capro::ServiceDescription service(int from) {
    if (from == 0) return {"bench", "pair", "there"};
    return {"bench", "pair", "back"};
}

class IceoryxChannel : Unique {
public:
    explicit IceoryxChannel(int rank)
        : out_(service(rank), lossless_publisher()), in_(service(1 - rank), lossless_subscriber()) {
        while (!out_.hasSubscribers()) sched_yield();
        while (in_.getSubscriptionState() != iox::SubscribeState::SUBSCRIBED) sched_yield();
    }

    void send(const void* data, std::size_t size) {
        auto loan = out_.loan(std::uint32_t(size));
        require(!loan.has_error(), "iceoryx: no chunk to loan");
        std::memcpy(loan.value(), data, size);
        out_.publish(loan.value());
    }
    void receive(void* data, std::size_t size) {
        receive_view(size, [&](const void* chunk) { std::memcpy(data, chunk, size); });
    }
    template <class Look>
    void receive_view(std::size_t, Look&& look) {
        auto taken = in_.take();
        while (taken.has_error()) taken = in_.take();
        look(taken.value());
        in_.release(taken.value());
    }

private:
    iox::popo::UntypedPublisher out_;
    iox::popo::UntypedSubscriber in_;
};

}  // namespace

int bench::measure(const Setup& setup) {
    iox::log::LogManager::GetLogManager().SetDefaultLogLevel(
        iox::log::LogLevel::kError, iox::log::LogLevelOutput::kHideLogLevel);
    return measure_ranks(setup, [](int rank, Meeting&) {
        iox::runtime::PoshRuntime::initRuntime(
            iox::RuntimeName_t(iox::cxx::TruncateToCapacity, own_name(rank)));
        return IceoryxChannel(rank);
    });
}
