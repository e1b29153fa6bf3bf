// SPDX-License-Identifier: Apache-2.0
//
// iceoryx: publisher and subscriber in each direction; loaned chunks, written and read in place.
// RouDi, its daemon, must be running.
#include "method.hpp"

#include <iceoryx_hoofs/log/logmanager.hpp>
#include <iceoryx_posh/popo/untyped_publisher.hpp>
#include <iceoryx_posh/popo/untyped_subscriber.hpp>
#include <iceoryx_posh/runtime/posh_runtime.hpp>
#include <iceoryx_versions.hpp>

namespace {

using namespace rivals;

std::string own_name(int rank) {
    return "rivals-iceoryx-" + std::to_string(rank) + "-" + std::to_string(getpid());
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
    if (from == 0) return {"rivals", "pair", "there"};
    return {"rivals", "pair", "back"};
}

class IceoryxChannel {
public:
    IceoryxChannel(int rank, Meeting& meeting)
        : rank_(rank),
          meeting_(meeting),
          out_(service(rank), lossless_publisher()),
          in_(service(1 - rank), lossless_subscriber()) {
        while (!out_.hasSubscribers()) sched_yield();
        while (in_.getSubscriptionState() != iox::SubscribeState::SUBSCRIBED) sched_yield();
    }
    ~IceoryxChannel() { meeting_.wait_for_other(rank_); }
    IceoryxChannel(const IceoryxChannel&) = delete;
    IceoryxChannel& operator=(const IceoryxChannel&) = delete;

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
    int rank_;
    Meeting& meeting_;
    iox::popo::UntypedPublisher out_;
    iox::popo::UntypedSubscriber in_;
};

int measure(const Options& options) {
    iox::log::LogManager::GetLogManager().SetDefaultLogLevel(
        iox::log::LogLevel::kError, iox::log::LogLevelOutput::kHideLogLevel);
    return measure_pair({"iceoryx", ICEORYX_LATEST_RELEASE_VERSION}, options,
                        [](int rank, Meeting& meeting) {
                            const std::string name = own_name(rank);
                            iox::runtime::PoshRuntime::initRuntime(
                                iox::RuntimeName_t(iox::cxx::TruncateToCapacity, name));
                            return IceoryxChannel(rank, meeting);
                        });
}

}  // namespace

int main(int argc, char** argv) {
    return guarded("iceoryx", [&] {
        return measure(parse_options(argc, argv, "iceoryx: publish and subscribe"));
    });
}
