// SPDX-License-Identifier: Apache-2.0
// Over real sockets of this host.

#include "tools/watch/metrics_server.hpp"

#include "rmem/error.hpp"
#include "tests/support/child.hpp"
#include "tests/tools/watch/http_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tools {
namespace {

using rmem::test::answer_to;
using rmem::test::Client;
using rmem::test::kGetMetrics;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct MetricsServerTest : ::testing::Test {
    MetricsServer server{"127.0.0.1", 0, [] { return std::string("rmem_x 1\n"); }};

    std::string ask(const std::string& request) const { return answer_to(request, server.port()); }
};

TEST_F(MetricsServerTest, answers_with_the_text) {
    EXPECT_EQ(server.url(), "http://127.0.0.1:" + std::to_string(server.port()) + "/metrics");
    for (const char* request : {kGetMetrics, "GET /metrics HTTP/1.0\r\n\r\n",
                                "GET /metrics?name=x HTTP/1.1\r\nHost: x\r\n\r\n"}) {
        const std::string answer = ask(request);
        EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
        EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4"));
        EXPECT_THAT(answer, HasSubstr("Content-Length: 9\r\n"));
        EXPECT_THAT(answer, ::testing::EndsWith("\r\n\r\nrmem_x 1\n"));
    }
}

TEST_F(MetricsServerTest, answers_head_without_the_text) {
    const std::string answer = ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("Content-Length: 9\r\n"));
    EXPECT_THAT(answer, Not(HasSubstr("rmem_x")));
}

TEST_F(MetricsServerTest, refuses_other_places_and_other_methods) {
    EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
    EXPECT_THAT(ask("GET /metrics/../x HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
    EXPECT_THAT(ask("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nxx"),
                StartsWith("HTTP/1.1 4"));
    EXPECT_THAT(ask("DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
}

TEST_F(MetricsServerTest, refuses_what_is_no_request) {
    EXPECT_THAT(ask("hello\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(ask("GET /metrics HTTP/9.9\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(ask(std::string(100, '\0') + "\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nbad header\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
}

TEST_F(MetricsServerTest, refuses_a_request_that_is_too_long) {
    const std::string start = "GET /metrics HTTP/1.1\r\n";
    EXPECT_THAT(ask(start + "X: " + std::string(10'000, 'x') + "\r\n\r\n"),
                StartsWith("HTTP/1.1 431 "));
    const Client endless(server.port());
    endless.say(start);
    for (int i = 0; i < 10'000 && endless.say("X: " + std::string(100, 'x') + "\r\n"); ++i) {
    }
    endless.hear();
    EXPECT_THAT(ask(start + "Host: x\r\n\r\n"), StartsWith("HTTP/1.1 200 ")) << "others go on";
}

TEST_F(MetricsServerTest, serves_others_while_some_say_nothing) {
    const Client silent(server.port());
    const Client slow(server.port());
    slow.say("GET /met");
    EXPECT_THAT(ask(kGetMetrics), StartsWith("HTTP/1.1 200 "));
    slow.say("rics HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(slow.hear(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(MetricsServerTest, bears_those_who_go_in_the_middle) {
    for (const char* part : {"", "GET", "GET /metrics HTTP/1.1\r\n", kGetMetrics}) {
        const Client client(server.port());
        client.say(part);
    }
    EXPECT_THAT(ask(kGetMetrics), StartsWith("HTTP/1.1 200 "));
}

TEST(MetricsServer, closes_on_those_who_take_too_long_and_lets_waiting_ones_in) {
    const MetricsServer server(
        "127.0.0.1", 0, [] { return std::string("rmem_x 1\n"); }, std::chrono::milliseconds(100));
    std::vector<std::unique_ptr<Client>> silent;
    for (std::size_t i = 0; i < MetricsServer::kMaxConnections + 4; ++i) {
        silent.push_back(std::make_unique<Client>(server.port()));
        EXPECT_TRUE(silent.back()->connected());
    }
    const bool answered = rmem::test::eventually([&] {  // a slow host may take too long itself
        return answer_to(kGetMetrics, server.port()).starts_with("HTTP/1.1 200 ");
    });
    EXPECT_TRUE(answered);
    for (const auto& client : silent) EXPECT_EQ(client->hear(), "");
}

TEST(MetricsServer, answers_at_once_while_hundreds_leave_their_requests_half_said) {
    const MetricsServer server(
        "127.0.0.1", 0, [] { return std::string("rmem_x 1\n"); }, std::chrono::hours(1));
    std::vector<std::unique_ptr<Client>> half;
    for (int i = 0; i < 300; ++i) {
        half.push_back(std::make_unique<Client>(server.port()));
        half.back()->say("GET /met");
    }
    EXPECT_THAT(answer_to(kGetMetrics, server.port()), StartsWith("HTTP/1.1 200 "));
}

TEST(MetricsServer, tells_the_client_that_the_text_cannot_be_made) {
    const MetricsServer server(
        "127.0.0.1", 0, []() -> std::string { throw std::runtime_error("the ring is broken"); });
    const std::string answer = answer_to(kGetMetrics, server.port());
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 500 "));
    EXPECT_THAT(answer, HasSubstr("the ring is broken"));
}

TEST(MetricsServer, ends_while_somebody_is_connected) {
    auto server = std::make_unique<MetricsServer>("127.0.0.1", 0, [] { return std::string(); });
    const Client client(server->port());
    client.say("GET /met");
    server.reset();
    client.hear();
}

TEST(MetricsServer, refuses_addresses_and_ports_that_cannot_be_had) {
    const auto text = [] { return std::string(); };
    EXPECT_THROW(MetricsServer("nowhere", 0, text), rmem::Error);
    EXPECT_THROW(MetricsServer("192.0.2.1", 0, text), rmem::Error);
    const MetricsServer first("127.0.0.1", 0, text);
    try {
        const MetricsServer second("127.0.0.1", first.port(), text);
        ADD_FAILURE() << "two at one port";
    } catch (const rmem::Error& error) {
        EXPECT_EQ(error.code(), rmem::Errc::system);
        EXPECT_THAT(error.what(), HasSubstr(std::to_string(first.port())));
    }
}

}  // namespace
}  // namespace tools
