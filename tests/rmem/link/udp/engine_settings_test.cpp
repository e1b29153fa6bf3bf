// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/engine_settings.hpp"

#include "tests/support/own_network.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>

namespace rmem::udp {
namespace {

using ::testing::HasSubstr;

/// Of a ring of two nodes on link fabric, whose addresses are in a file.
class Addresses : public ::testing::Test {
protected:
    Addresses() {
        config_.nodes = config_.ranks = 2;
        config_.link = LinkKind::fabric;
        set("RMEM_GROUP", file_);
    }
    ~Addresses() override {
        for (const char* name : {"RMEM_GROUP", "RMEM_JOIN_TIMEOUT"})
            ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe): there is one thread
    }
    static void set(const char* name, const std::string& value) {
        ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): there is one thread
    }
    void write(const std::string& first_host) const {
        std::ofstream(file_ + ".new") << first_host << ":7400\n127.0.0.1:7401\n";
        std::filesystem::rename(file_ + ".new", file_);
    }
    test::OwnDirectory directory_;
    const std::string file_ = directory_.path() + "/rig.nodes";
    RingConfig config_;
};

TEST_F(Addresses, of_hosts_that_are_not_known_yet_are_awaited) {
    write("no-such-host.invalid");
    set("RMEM_JOIN_TIMEOUT", "60s");
    auto settings = std::async(std::launch::async, [&] { return EngineSettings::read(config_); });
    EXPECT_EQ(settings.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
    write("127.0.0.1");
    EXPECT_EQ(settings.get().fabric.value().nodes.at(0), (Address{0x7f000001, 7400}));
}

TEST_F(Addresses, of_hosts_that_stay_unknown_are_refused_by_name) {
    write("no-such-host.invalid");
    set("RMEM_JOIN_TIMEOUT", "1ms");
    EXPECT_THAT(test::refused(Errc::bad_environment, [&] { EngineSettings::read(config_); }),
                HasSubstr("the host 'no-such-host.invalid' is not known"));
}

}  // namespace
}  // namespace rmem::udp
