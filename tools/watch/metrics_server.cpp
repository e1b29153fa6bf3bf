// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/metrics_server.hpp"

#include "rmem/base/helper_thread.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <list>
#include <optional>
#include <utility>

namespace tools {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

using Answer = http::response<http::string_body>;

constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr auto kMaxLinger = std::chrono::seconds(1);

Answer answer_with(http::status status, std::string text) {
    Answer answer(status, 11);
    answer.set(http::field::content_type, status == http::status::ok
                                              ? "text/plain; version=0.0.4; charset=utf-8"
                                              : "text/plain; charset=utf-8");
    answer.keep_alive(false);
    answer.body() = std::move(text);
    answer.prepare_payload();
    return answer;
}

Answer answer_to(const http::request<http::empty_body>& request, const MetricsServer::Text& text) {
    const auto target = request.target().substr(0, request.target().find('?'));
    if (target != "/metrics") {
        return answer_with(http::status::not_found, "Ask for /metrics.\n");
    }
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
        Answer answer = answer_with(http::status::method_not_allowed, "Ask with GET.\n");
        answer.set(http::field::allow, "GET, HEAD");
        return answer;
    }
    try {
        return answer_with(http::status::ok, text());
    } catch (const std::exception& error) {
        return answer_with(http::status::internal_server_error, std::string(error.what()) + "\n");
    }
}

/// To a request that could not be read; nothing when nobody is there to be told, or time was up.
std::optional<Answer> answer_to(const error_code& problem) {
    if (problem == http::error::header_limit || problem == http::error::buffer_overflow) {
        return answer_with(http::status::request_header_fields_too_large,
                           "The request is too long.\n");
    }
    if (problem == http::error::body_limit) {
        return answer_with(http::status::payload_too_large, "The request has a body; send none.\n");
    }
    if (problem == http::error::end_of_stream || problem == http::error::partial_message ||
        problem.category() != http::make_error_code(http::error::bad_method).category()) {
        return std::nullopt;
    }
    return answer_with(http::status::bad_request, "This is not an HTTP request.\n");
}

/// One request and its answer. It keeps itself alive until then.
class Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(tcp::socket socket, const MetricsServer::Text& text)
        : stream_(std::move(socket)), buffer_(MetricsServer::kMaxRequestBytes), text_(text) {
        parser_.header_limit(MetricsServer::kMaxRequestBytes);
        parser_.body_limit(0);
    }

    /// Whether its request has not come yet.
    bool is_reading() const { return is_reading_; }
    /// Ends it without an answer.
    void give_up() {
        error_code ignored;
        stream_.socket().close(ignored);
    }

    void start(std::chrono::steady_clock::duration most_time) {
        stream_.expires_after(most_time);
        http::async_read_header(
            stream_, buffer_, parser_,
            [self = shared_from_this()](const error_code& problem, std::size_t) {
                self->has_read(problem);
            });
    }

private:
    void has_read(const error_code& problem) {
        is_reading_ = false;
        auto answer = problem ? answer_to(problem) : answer_to(parser_.get(), text_);
        if (!answer) return;
        answer_ = std::move(*answer);
        if (!problem && parser_.get().method() == http::verb::head) answer_.body().clear();
        http::async_write(stream_, answer_,
                          [self = shared_from_this()](const error_code& failed, std::size_t) {
                              if (!failed) self->linger();
                          });
    }

    /// Unread input would reset the connection and take the answer with it.
    void linger() {
        error_code ignored;
        stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
        stream_.expires_after(kMaxLinger);
        drain(MetricsServer::kMaxRequestBytes * 16);
    }
    void drain(std::size_t left) {
        stream_.async_read_some(
            asio::buffer(rest_),
            [self = shared_from_this(), left](const error_code& failed, std::size_t got) {
                if (!failed && got < left) self->drain(left - got);
            });
    }

    beast::tcp_stream stream_;
    beast::flat_buffer buffer_;
    http::request_parser<http::empty_body> parser_;
    Answer answer_;
    std::array<char, 1024> rest_{};
    bool is_reading_ = true;
    const MetricsServer::Text& text_;
};

tcp::endpoint endpoint_of(const std::string& address, std::uint16_t port) {
    error_code problem;
    const auto parsed = asio::ip::make_address(address, problem);
    if (!problem) return {parsed, port};
    throw rmem::Error(rmem::Errc::bad_environment,
                      fmt::format("'{}' is not an address (--metrics-address); give for instance "
                                  "127.0.0.1, or 0.0.0.0 for all of this host",
                                  address));
}

}  // namespace

class MetricsServer::Server {
public:
    Server(const tcp::endpoint& endpoint, Text text, std::chrono::steady_clock::duration most_time)
        : text_(std::move(text)), most_time_(most_time), acceptor_(context_), pause_(context_) {
        listen(endpoint);
        accept();
        thread_.emplace(
            "rmem-metrics", [this] { context_.run(); }, [this] { context_.stop(); });
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    tcp::endpoint endpoint() const { return endpoint_; }

private:
    void listen(const tcp::endpoint& endpoint) {
        try {
            acceptor_.open(endpoint.protocol());
            acceptor_.set_option(tcp::acceptor::reuse_address(true));
            acceptor_.bind(endpoint);
            acceptor_.listen();
            endpoint_ = acceptor_.local_endpoint();
        } catch (const boost::system::system_error& error) {
            throw rmem::Error(
                rmem::Errc::system,
                fmt::format("metrics cannot be served at {} port {}: {}; choose another port, or "
                            "0 for any",
                            endpoint.address().to_string(), endpoint.port(),
                            error.code().message()));
        }
    }

    void accept() {
        acceptor_.async_accept([this](const error_code& problem, tcp::socket socket) {
            if (problem) return accept_later();
            make_room();
            const auto made = std::make_shared<Connection>(std::move(socket), text_);
            open_.push_back(made);
            made->start(most_time_);
            accept();
        });
    }

    /// Where there is none, ends the one that has been at its request for the longest time; where
    /// all are being answered, the oldest.
    void make_room() {
        open_.remove_if([](const auto& one) { return one.expired(); });
        if (open_.size() < kMaxConnections) return;
        const auto reading = std::find_if(open_.begin(), open_.end(), [](const auto& one) {
            const auto connection = one.lock();
            return connection && connection->is_reading();
        });
        const auto chosen = reading != open_.end() ? reading : open_.begin();
        if (const auto connection = chosen->lock()) connection->give_up();
        open_.erase(chosen);
    }

    /// For instance because the process has no descriptors left.
    void accept_later() {
        pause_.expires_after(kAcceptPause);
        pause_.async_wait([this](const error_code& stopped) {
            if (!stopped) accept();
        });
    }

    // The context is destroyed first of all that its handlers use, since it is what holds them.
    Text text_;
    std::chrono::steady_clock::duration most_time_;
    std::list<std::weak_ptr<Connection>> open_;  ///< the oldest first
    tcp::endpoint endpoint_;
    asio::io_context context_{1};
    tcp::acceptor acceptor_;
    asio::steady_timer pause_;
    std::optional<rmem::HelperThread> thread_;
};

MetricsServer::MetricsServer(const std::string& address, std::uint16_t port, Text text,
                             std::chrono::steady_clock::duration most_time)
    : server_(std::make_unique<Server>(endpoint_of(address, port), std::move(text), most_time)) {}

MetricsServer::~MetricsServer() = default;

std::uint16_t MetricsServer::port() const {
    return server_->endpoint().port();
}

std::string MetricsServer::url() const {
    const auto address = server_->endpoint().address();
    const std::string host =
        address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
    return fmt::format("http://{}:{}/metrics", host, port());
}

}  // namespace tools
