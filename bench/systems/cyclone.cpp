// SPDX-License-Identifier: Apache-2.0
//
// Eclipse Cyclone DDS: a reliable topic each way that keeps all, taken from in a loop.
#include "bench/harness/harness.hpp"

#include "word.h"

#include <dds/dds.h>
#include <dds/version.h>

namespace {

using namespace bench;

dds_entity_t check(dds_return_t result, const char* what) {
    require(result >= 0, what, [&] { return dds_strretcode(result); });
    return result;
}

class CycloneChannel : Unique {
public:
    explicit CycloneChannel(int rank)
        : participant_(check(dds_create_participant(DDS_DOMAIN_DEFAULT, nullptr, nullptr),
                             "dds_create_participant")) {
        dds_qos_t* const qos = dds_create_qos();
        dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
        dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
        const char* const names[] = {"bench_0", "bench_1"};
        writer_ = check(dds_create_writer(participant_, topic(names[rank], qos), qos, nullptr),
                        "dds_create_writer");
        reader_ = check(dds_create_reader(participant_, topic(names[1 - rank], qos), qos, nullptr),
                        "dds_create_reader");
        dds_delete_qos(qos);
        wait_for_other();
    }
    ~CycloneChannel() { dds_delete(participant_); }

    void send(const void* data, std::size_t size) {
        bench_dds_Word word{};
        word.bytes._buffer = static_cast<std::uint8_t*>(const_cast<void*>(data));
        word.bytes._length = word.bytes._maximum = std::uint32_t(size);
        check(dds_write(writer_, &word), "dds_write");
    }
    /// Yields between polls: the receiving thread of the same process needs this CPU.
    void receive(void* data, std::size_t size) {
        void* sample = nullptr;
        dds_sample_info_t info{};
        dds_return_t taken = 0;
        do {
            while ((taken = dds_take(reader_, &sample, &info, 1, 1)) == 0) sched_yield();
            check(taken, "dds_take");
            if (info.valid_data) {
                const auto& bytes = static_cast<bench_dds_Word*>(sample)->bytes;
                require(bytes._length == size, "a message of another size");
                std::memcpy(data, bytes._buffer, size);
            }
            dds_return_loan(reader_, &sample, taken);
        } while (!info.valid_data);
    }

private:
    dds_entity_t topic(const char* name, const dds_qos_t* qos) {
        return check(dds_create_topic(participant_, &bench_dds_Word_desc, name, qos, nullptr),
                     "dds_create_topic");
    }

    /// Messages written before the reader is known do not reach it.
    void wait_for_other() {
        dds_publication_matched_status_t written{};
        dds_subscription_matched_status_t read{};
        while (written.current_count == 0 || read.current_count == 0) {
            check(dds_get_publication_matched_status(writer_, &written), "matched");
            check(dds_get_subscription_matched_status(reader_, &read), "matched");
            usleep(1000);
        }
    }

    dds_entity_t participant_, writer_ = 0, reader_ = 0;
};

}  // namespace

int bench::measure(const Setup& setup) {
    // A domain of its own, apart from other programs of this network.
    setenv("CYCLONEDDS_DOMAIN", std::to_string(Setup::some_port() % 200).c_str(), 0);
    return measure_ranks(setup, [](int rank, Meeting&) { return CycloneChannel(rank); });
}
