// SPDX-License-Identifier: Apache-2.0
#include "remote/client.hpp"

#include "rmem/base/failures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

namespace remote {

namespace {

/// Between looks whether the thread is to end.
constexpr int kIdleMs = 100;
constexpr std::size_t kReceiveBytes = std::size_t{64} << 10;
using rmem::kNsPerMs;
/// A sleep without a limit is slept in parts, which no clock overflows by.
constexpr std::int64_t kLongestSleepNs = 3'600'000'000'000;

std::vector<std::byte> frame_of(Kind kind, const auto&... fields) {
    std::vector<std::byte> bytes;
    FrameWriter frame(bytes, kind);
    (frame.put(fields), ...);
    return bytes;
}

std::vector<std::byte> frame_of_store(std::uint64_t offset, std::span<const std::byte> words,
                                      rmem::WordPart part) {
    if (part == rmem::kWholeWord) return frame_of(Kind::write, offset, words);
    return frame_of(Kind::write_part, offset, rmem::load<std::uint32_t>(words.data()),
                    std::uint32_t{part});
}

int no_interrupt(unsigned number) {
    return rmem::fail(RMEM_EINVAL,
                      fmt::format("there is no interrupt {}; their numbers are 0 to {}", number,
                                  RMEM_INTERRUPT_NUMBERS - 1));
}

int not_spoken(Kind kind) {
    return rmem::fail(RMEM_ECORRUPT, fmt::format("the server's answer is none to a request; it is "
                                                 "of kind {}",
                                                 static_cast<unsigned>(kind)));
}

}  // namespace

Client::Client(const Address& address)
    : where_(fmt::format("{} port {}", address.host, address.port)),
      calls_(address),
      news_(address) {
    greet(calls_, Channel::calls);
    greet(news_, Channel::news);
    const Lock lock(news_mutex_);
    news_thread_.emplace(
        "rmem-news", [this] { follow_news(); }, [this] { news_.end(); });
}

Client::~Client() {
    callback_thread_.reset();
    send_stores();
}

void Client::greet(Socket& socket, Channel channel) {
    Bytes hello;
    write_hello(hello, {kVersion, channel, welcome_.session});
    FrameQueue frames(kMaxBodyBytes);
    if (!socket.send(hello) || !take_frame(socket, frames)) {
        throw rmem::Error(rmem::Errc::system,
                          fmt::format("what serves at {} does not answer as `rmem serve` does; is "
                                      "it another program, or are all its places taken?",
                                      where_));
    }
    const Frame answer = *frames.front();
    if (kind_of(answer) == Kind::failed) {
        static_cast<void>(failed(answer));
        throw rmem::Error(rmem::Errc::version_mismatch, rmem::last_error());
    }
    if (channel == Channel::news && kind_of(answer) == Kind::done) return;
    const auto welcome = read_welcome(answer);
    if (!welcome || channel == Channel::news || welcome->memory_bytes > SIZE_MAX / 4) {
        throw rmem::Error(rmem::Errc::version_mismatch,
                          fmt::format("what serves at {} is no `rmem serve`", where_));
    }
    welcome_ = *welcome;
}

/// False: the connection has ended, or breaks the protocol.
bool Client::take_frame(Socket& socket, FrameQueue& frames) {
    std::array<std::byte, kReceiveBytes> buffer;
    while (!frames.front()) {
        const std::size_t came = frames.is_broken() ? 0 : socket.receive(buffer);
        if (came == 0) return false;
        frames.add(std::span(buffer).first(came));
    }
    return true;
}

// ---- The end

int Client::state() {
    const Lock lock(news_mutex_);
    if (ended_.empty()) return RMEM_OK;
    return rmem::fail(RMEM_EPEER, ended_);
}

void Client::end(const std::string& why) {
    {
        const Lock lock(news_mutex_);
        if (!ended_.empty()) return;
        ended_ = fmt::format(
            "the connection to the node at {} has ended: {}; see that `rmem "
            "serve` runs there, and open the node once more",
            where_, why);
        std::fprintf(stderr, "rmem: %s\n", ended_.c_str());
    }
    has_news_.notify_all();
    calls_.end();
    news_.end();
}

// ---- Calls

int Client::post(const Bytes& frame, std::uint64_t* number) {
    if (const int code = state(); code < 0) return code;
    const Lock lock(calls_mutex_);
    if (!calls_.send(frame)) {
        end("nothing can be sent to it");
        return state();
    }
    if (number != nullptr) *number = ++writes_;
    return RMEM_OK;
}

int Client::check_range(std::uint64_t offset, std::size_t bytes) const {
    const std::uint64_t size = welcome_.memory_bytes;
    if (offset <= size && bytes <= size - offset) return RMEM_OK;
    return rmem::fail(RMEM_EINVAL,
                      fmt::format("{} bytes at {:#x} are not within the memory of the node at {}, "
                                  "which has {} bytes; give a range inside it",
                                  bytes, offset, where_, size));
}

int Client::check_word(std::uint64_t offset) const {
    const int code = check_range(offset, kWordBytes);
    if (code < 0 || offset % kWordBytes == 0) return code;
    return rmem::fail(RMEM_EINVAL, fmt::format("{:#x} is not the offset of a word; give a multiple "
                                               "of {}",
                                               offset, kWordBytes));
}

/// The failure that the server tells.
int Client::failed(const Frame& frame) {
    FieldReader fields(frame.body);
    const auto code = static_cast<std::int32_t>(fields.take<std::uint32_t>());
    const auto sentence = fields.rest();
    return rmem::fail(std::min<int>(code, RMEM_EAGAIN),
                      {reinterpret_cast<const char*>(sentence.data()), sentence.size()});
}

/// The answer's body has the bytes of `answer`, and is stored there.
int Client::ask(const Bytes& frame, Kind kind, std::span<std::byte> answer) {
    if (const int code = state(); code < 0) return code;
    const Lock lock(calls_mutex_);
    if (!calls_.send(frame) || !take_frame(calls_, answers_)) {
        end("it does not answer");
        return state();
    }
    const Frame came = *answers_.front();
    int code = RMEM_OK;
    if (kind_of(came) == Kind::failed) {
        code = failed(came);
    } else if (kind_of(came) != kind || came.body.size() != answer.size()) {
        end("it answers what was not asked");
        code = not_spoken(kind_of(came));
    } else if (!answer.empty()) {
        std::memcpy(answer.data(), came.body.data(), answer.size());
    }
    answers_.pop();
    return code;
}

int Client::ask_number(const Bytes& frame, std::uint64_t& number) {
    std::array<std::byte, sizeof number> answer{};
    const int code = ask(frame, Kind::number, answer);
    if (code == RMEM_OK) number = rmem::load<std::uint64_t>(answer.data());
    return code;
}

int Client::read(std::uint64_t offset, std::span<std::byte> to) {
    int code = check_range(offset, to.size());
    if (code < 0) return code;
    send_stores(offset, to.size());
    do {
        const auto part = to.first(std::min(to.size(), kMaxDataBytes));
        code = ask(frame_of(Kind::read, offset, static_cast<std::uint32_t>(part.size())),
                   Kind::data, part);
        to = to.subspan(part.size());
        offset += part.size();
    } while (code == RMEM_OK && !to.empty());
    return code;
}

int Client::write(std::uint64_t offset, std::span<const std::byte> data, rmem::WordPart part) {
    int code = check_range(offset, data.size());
    if (code < 0) return code;
    send_stores(offset, data.size());
    const Lock lock(view_mutex_);
    do {
        const auto piece = data.first(std::min(data.size(), kMaxDataBytes));
        std::uint64_t number = 0;
        code = post(frame_of_store(offset, piece, part), &number);
        if (code == RMEM_OK && view_) view_->wrote(offset, piece, number, part);
        data = data.subspan(piece.size());
        offset += piece.size();
    } while (code == RMEM_OK && !data.empty());
    return code;
}

int Client::send_interrupt(int to, std::uint32_t number, std::uint32_t value) {
    if (to != RMEM_ALL_NODES && (to < 0 || static_cast<unsigned>(to) >= welcome_.nodes)) {
        return rmem::fail(RMEM_ERANK, fmt::format("there is no node {} in the ring of {} nodes; "
                                                  "they count from 0",
                                                  to, welcome_.nodes));
    }
    if (number >= RMEM_INTERRUPT_NUMBERS) return no_interrupt(number);
    send_stores();
    return post(frame_of(Kind::send, static_cast<std::uint32_t>(to), number, value));
}

int Client::accept_interrupts(std::uint64_t numbers) {
    if (numbers >> RMEM_INTERRUPT_NUMBERS != 0)
        return no_interrupt(static_cast<unsigned>(std::bit_width(numbers)) - 1);
    return ask(frame_of(Kind::accept, numbers), Kind::done, {});
}

int Client::flush(std::int64_t timeout_ns) {
    send_stores();
    const auto deadline = rmem::Deadline::in(timeout_ns);
    for (;;) {
        // The server waits for kLongestFlushNs at most, so other threads' calls come in between.
        const std::int64_t now_ns = rmem::program_now_ns();
        const std::int64_t left_ns = deadline.passed(now_ns) ? 0 : deadline.at_ns - now_ns;
        std::uint64_t flushed = 0;
        const int code =
            ask_number(frame_of(Kind::flush, static_cast<std::uint64_t>(left_ns)), flushed);
        if (code == RMEM_ETIMEDOUT && !deadline.passed(rmem::program_now_ns())) continue;
        if (code < 0 || flushed != RMEM_ALONE) return code;
        return rmem::fail(RMEM_ALONE,
                          "no other node of the ring is there, so nobody else has what "
                          "was flushed");
    }
}

int Client::counter(std::string_view name, std::uint64_t& value) {
    // No counter's name is as long as what the protocol has.
    return ask_number(frame_of(Kind::counter, name.substr(0, kMaxCounterNameBytes)), value);
}

int Client::is_there(Kind kind, int of) {
    std::uint64_t is_there = 0;
    const int code = ask_number(frame_of(kind, static_cast<std::uint32_t>(of)), is_there);
    return code < 0 ? code : static_cast<int>(is_there != 0);
}

int Client::is_member() {
    std::uint64_t member = 0;
    const int code = ask_number(frame_of(Kind::is_member), member);
    return code < 0 ? code : static_cast<int>(member != 0);
}

// ---- What is mapped

void Client::send_stores() {
    send_stores(0, welcome_.memory_bytes);
}

void Client::send_stores(std::uint64_t offset, std::uint64_t bytes) {
    const Lock lock(view_mutex_);
    if (!view_) return;
    const auto send = [this](std::uint64_t at, std::span<const std::byte> words,
                             rmem::WordPart part) {
        std::uint64_t number = 0;
        // One that fails ends the connection, which the program's next call tells.
        static_cast<void>(post(frame_of_store(at, words, part), &number));
        return number;
    };
    view_->collect(offset, bytes, send);
}

bool Client::has_view() {
    const Lock lock(view_mutex_);
    return view_.has_value();
}

int Client::map(std::uint64_t offset, std::uint64_t bytes, void** memory) {
    const Lock one(map_mutex_);
    {
        // No write comes between what both sides take for the beginning.
        const Lock lock(view_mutex_);
        if (!view_) view_.emplace(welcome_.memory_bytes);
        const int code = ask(frame_of(Kind::map, offset, bytes), Kind::done, {});
        if (code < 0) return code;
        view_->map(offset, bytes);
        *memory = view_->memory();
    }
    ++asked_maps_;
    Lock lock(news_mutex_);
    while (shown_maps_ < asked_maps_ && ended_.empty()) {
        const std::uint64_t before = frames_;
        const bool is_over = has_news_.wait_for(lock, Socket::kLongestSilence, [&] {
            return shown_maps_ >= asked_maps_ || !ended_.empty();
        });
        if (is_over || frames_ != before) continue;
        lock.unlock();
        end("it does not show the memory");
        lock.lock();
    }
    lock.unlock();
    return state();
}

// ---- News

void Client::follow_news() {
    FrameQueue frames(kMaxBodyBytes);
    std::int64_t look_at_ns = 0;
    { const Lock made(news_mutex_); }
    while (!news_thread_->is_stopping()) {
        const bool is_mapped = has_view();
        if (news_.wait(is_mapped ? kLookMs : kIdleMs) && !take_news(frames)) return;
        const std::int64_t now_ns = rmem::now_ns();
        if (!is_mapped || now_ns < look_at_ns) continue;
        send_stores();
        // A long look leaves the processor, and the mutex, to others for as long as it took.
        const std::int64_t end_ns = rmem::now_ns();
        look_at_ns = end_ns + std::max<std::int64_t>(end_ns - now_ns, kLookMs * kNsPerMs);
    }
}

/// What has come; false: it has ended.
bool Client::take_news(FrameQueue& frames) {
    std::array<std::byte, kReceiveBytes> buffer;
    const std::size_t came = news_.receive(buffer);
    if (came == 0) {
        if (!news_thread_->is_stopping()) end("it was closed there");
        return false;
    }
    frames.add(std::span(buffer).first(came));
    while (const auto frame = frames.front()) {
        if (!take(*frame)) break;
        frames.pop();
    }
    if (!frames.is_broken() && !frames.front()) return true;
    end("it tells what the protocol does not have");
    return false;
}

bool Client::take(const Frame& frame) {
    FieldReader fields(frame.body);
    if (kind_of(frame) == Kind::change) {
        const auto known = fields.take<std::uint64_t>();
        const auto offset = fields.take<std::uint64_t>();
        const auto words = fields.rest();
        const Lock lock(view_mutex_);
        if (!fields.is_whole() || !view_ || offset % kWordBytes != 0 ||
            words.size() % kWordBytes != 0 || offset > welcome_.memory_bytes ||
            words.size() > welcome_.memory_bytes - offset) {
            return false;
        }
        view_->changed(offset, words, known);
    }
    const Lock lock(news_mutex_);
    ++frames_;
    if (kind_of(frame) == Kind::change) return true;
    if (kind_of(frame) == Kind::shown) {
        shown_maps_ = fields.take<std::uint64_t>();
    } else if (kind_of(frame) == Kind::interrupt) {
        rmem_interrupt interrupt{};
        interrupt.offset = fields.take<std::uint64_t>();
        interrupt.value = fields.take<std::uint32_t>();
        interrupt.origin = fields.take<std::uint32_t>();
        missed_ += fields.take<std::uint64_t>();
        interrupt.kind = fields.take<std::uint32_t>();
        if (interrupts_.size() == kMaxInterrupts) {
            ++missed_;
        } else {
            interrupt.missed = std::exchange(missed_, 0);
            interrupts_.push_back(interrupt);
        }
    } else {
        return false;
    }
    has_news_.notify_all();
    return fields.is_whole();
}

template <class Wanted>
void Client::await(Lock& lock, rmem::Deadline deadline, Wanted wanted) {
    const auto is_over = [&] { return !ended_.empty() || wanted(); };
    while (!is_over()) {
        const std::int64_t now_ns = rmem::program_now_ns();
        if (deadline.passed(now_ns)) return;
        const std::int64_t sleep_ns = std::min(deadline.at_ns - now_ns, kLongestSleepNs);
        has_news_.wait_for(lock, std::chrono::nanoseconds(sleep_ns), is_over);
    }
}

int Client::next_interrupt(rmem_interrupt& interrupt, std::int64_t timeout_ns) {
    Lock lock(news_mutex_);
    await(lock, rmem::Deadline::in(timeout_ns), [this] { return !interrupts_.empty(); });
    if (interrupts_.empty()) {
        if (!ended_.empty()) return rmem::fail(RMEM_EPEER, ended_);
        return rmem::fail(RMEM_ETIMEDOUT, "no interrupt came within the deadline");
    }
    interrupt = interrupts_.front();
    interrupts_.pop_front();
    return RMEM_OK;
}

int Client::on_interrupt(Callback function, void* with) {
    const Lock lock(news_mutex_);
    callback_ = function;
    with_ = with;
    has_news_.notify_all();
    if (callback_thread_) return RMEM_OK;
    const auto end_sleep = [this] {
        {
            const Lock closing(news_mutex_);
            is_closing_ = true;
        }
        has_news_.notify_all();
    };
    callback_thread_.emplace(
        "rmem-interrupts", [this] { call_back(); }, end_sleep);
    return RMEM_OK;
}

void Client::call_back() {
    Lock lock(news_mutex_);
    for (;;) {
        await(lock, rmem::Deadline::never(),
              [this] { return is_closing_ || (callback_ != nullptr && !interrupts_.empty()); });
        if (is_closing_ || !ended_.empty()) return;
        const rmem_interrupt next = interrupts_.front();
        interrupts_.pop_front();
        const Callback function = callback_;
        void* const with = with_;
        lock.unlock();
        function(with, &next);
        lock.lock();
    }
}

}  // namespace remote
