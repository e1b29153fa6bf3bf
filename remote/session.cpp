// SPDX-License-Identifier: Apache-2.0
#include "remote/session.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/wait_for_room.hpp"
#include "rmem/base/word_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace remote {

namespace {

constexpr std::size_t kMaxMaps = 1024;  ///< that are not shown yet

bool has_answer(Kind kind) {
    return kind != Kind::write && kind != Kind::write_part && kind != Kind::send;
}

bool is_whole_word(std::uint64_t offset, std::size_t bytes) {
    return offset % kWordBytes == 0 && bytes == kWordBytes;
}

}  // namespace

// ---- Twins

Twins::Twin& Twins::join(std::uint64_t offset, Words& due) {
    Twin& twin = twins_[offset];
    for (std::size_t word = 0; word < due.size(); ++word)
        due[word] = rmem::load<std::uint32_t>(twin.bytes.data() + word * kWordBytes) != 0;
    twin.due.push_back(&due);
    return twin;
}

void Twins::leave(std::uint64_t offset, Words& due) {
    const auto found = twins_.find(offset);
    RMEM_CHECK(found != twins_.end());
    const auto left = std::erase(found->second.due, &due);
    RMEM_CHECK(left == 1);
    if (found->second.due.empty()) twins_.erase(found);
}

void Twins::compare(std::uint64_t offset, Twin& twin) const {
    std::array<std::byte, kPageBytes> bank;
    if (rmem_read(node_, offset, bank.data(), bank.size()) < 0 || bank == twin.bytes) return;
    for (std::size_t at = 0; at < kPageBytes; at += kWordBytes) {
        if (std::memcmp(bank.data() + at, twin.bytes.data() + at, kWordBytes) == 0) continue;
        for (Words* const due : twin.due) due->set(at / kWordBytes);
    }
    twin.bytes = bank;
}

// ---- A session

Session::Session(rmem_node* node, std::uint64_t number, Twins& twins)
    : node_(node),
      twins_(twins),
      number_(number),
      memory_bytes_(rmem_size(node)),
      buffer_(kMaxDataBytes) {
    write_welcome(
        answers_.bytes(),
        {number, memory_bytes_, static_cast<std::uint32_t>(rmem_id(node)),
         static_cast<std::uint32_t>(rmem_nodes(node)), static_cast<std::uint32_t>(rmem_rank(node)),
         static_cast<std::uint32_t>(rmem_ranks(node))});
}

Session::~Session() {
    for (auto& [offset, page] : pages_) twins_.leave(offset, page.is_due);
}

// ---- Calls

void Session::run(std::int64_t now_ns) {
    RMEM_CHECK(!is_waiting_ || has_calls());
    if (is_waiting_) static_cast<void>(rmem_poll(node_));
    while (!is_broken_ && !is_full(answers_)) {
        const auto frame = calls_.front();
        if (!frame) {
            is_broken_ = calls_.is_broken();
            return;
        }
        const Step step = make(*frame, now_ns);
        RMEM_CHECK(is_bounded(answers_));
        if (step == Step::again) return;
        is_waiting_ = false;
        is_broken_ = step == Step::broken;
        calls_.pop();
    }
}

Session::Step Session::make(const Frame& frame, std::int64_t now_ns) {
    if (has_answer(kind_of(frame)) && !failure_.empty()) {
        FrameWriter(answers_.bytes(), Kind::failed)
            .put(static_cast<std::uint32_t>(failure_code_))
            .put(failure_);
        failure_.clear();
        return Step::done;
    }
    const FieldReader fields(frame.body);
    switch (kind_of(frame)) {
        case Kind::read: return read(fields);
        case Kind::write: return write(fields, now_ns);
        case Kind::write_part: return write_part(fields, now_ns);
        case Kind::send: return send(fields, now_ns);
        case Kind::accept: return accept(fields);
        case Kind::flush: return flush(fields, now_ns);
        case Kind::counter: return counter(fields);
        case Kind::is_alive:
        case Kind::is_present:
        case Kind::is_member: return state(kind_of(frame), fields);
        case Kind::map: return map(fields);
        default: return Step::broken;
    }
}

/// `code`: of the call of the node that failed, which has left its sentence.
Session::Step Session::answer(int code) {
    if (code >= 0) {
        FrameWriter(answers_.bytes(), Kind::done);
    } else {
        FrameWriter(answers_.bytes(), Kind::failed)
            .put(static_cast<std::uint32_t>(code))
            .put(std::string_view(rmem_last_error()));
    }
    return Step::done;
}

Session::Step Session::answer_number(std::uint64_t number) {
    FrameWriter(answers_.bytes(), Kind::number).put(number);
    return Step::done;
}

Session::Step Session::read(FieldReader fields) {
    const auto offset = fields.take<std::uint64_t>();
    const auto bytes = fields.take<std::uint32_t>();
    if (!fields.is_whole() || bytes > buffer_.size()) return Step::broken;
    int code = RMEM_OK;
    if (is_whole_word(offset, bytes) && offset < memory_bytes_) {
        const std::uint32_t word = rmem_load(node_, offset);
        std::memcpy(buffer_.data(), &word, sizeof word);
    } else {
        code = rmem_read(node_, offset, buffer_.data(), bytes);
    }
    if (code < 0) return answer(code);
    FrameWriter(answers_.bytes(), Kind::data).put(std::span(buffer_).first(bytes));
    return Step::done;
}

bool Session::has_waited(std::int64_t now_ns, std::int64_t longest_ns) {
    if (!is_waiting_) waiting_since_ns_ = now_ns;
    is_waiting_ = true;
    return now_ns - waiting_since_ns_ >= longest_ns;
}

/// After a call that puts something on the ring.
Session::Step Session::put(int code, std::int64_t now_ns) {
    if (code >= 0) return Step::done;
    // What follows one that has failed does not wait as well.
    const std::int64_t longest_ns = failure_.empty() ? rmem::kLongestWaitForRoomNs : 0;
    if (code == RMEM_EAGAIN && !has_waited(now_ns, longest_ns)) return Step::again;
    if (failure_.empty()) {
        failure_code_ = code == RMEM_EAGAIN ? RMEM_ESYS : code;
        failure_ = code == RMEM_EAGAIN
                       ? fmt::format(
                             "an earlier write found no room on the ring for {} s; find "
                             "out which node does not take what is sent (rmem top)",
                             rmem::kLongestWaitForRoomNs / 1'000'000'000)
                       : fmt::format("an earlier write was not made: {}", rmem_last_error());
    }
    return Step::done;
}

Session::Step Session::write(FieldReader fields, std::int64_t now_ns) {
    const auto offset = fields.take<std::uint64_t>();
    const auto data = fields.rest();
    if (!fields.is_whole() || data.size() > kMaxDataBytes) return Step::broken;
    int code = RMEM_OK;
    if (is_whole_word(offset, data.size())) {
        std::uint32_t word = 0;
        std::memcpy(&word, data.data(), sizeof word);
        code = rmem_write_word(node_, offset, word);
    } else {
        code = rmem_write(node_, offset, data.data(), data.size());
    }
    const Step step = put(code, now_ns);
    if (step != Step::done) return step;
    ++writes_;
    // Of one that has failed, too: the next look takes it back.
    client_has(offset, data);
    return step;
}

Session::Step Session::write_part(FieldReader fields, std::int64_t now_ns) {
    const auto offset = fields.take<std::uint64_t>();
    const auto value = fields.take<std::uint32_t>();
    const auto part = fields.take<std::uint32_t>();
    if (!fields.is_whole() || part > rmem::kWholeWord) return Step::broken;
    const Step step = put(rmem_write_part(node_, offset, value, part), now_ns);
    if (step != Step::done) return step;
    ++writes_;
    rmem::for_each_run(
        static_cast<rmem::WordPart>(part), std::as_bytes(std::span(&value, 1)),
        [&](std::size_t at, std::span<const std::byte> bytes) { client_has(offset + at, bytes); });
    return step;
}

Session::Step Session::send(FieldReader fields, std::int64_t now_ns) {
    const auto to = static_cast<std::int32_t>(fields.take<std::uint32_t>());
    const auto number = fields.take<std::uint32_t>();
    const auto value = fields.take<std::uint32_t>();
    if (!fields.is_whole()) return Step::broken;
    return put(rmem_send_interrupt(node_, to, number, value), now_ns);
}

Session::Step Session::accept(FieldReader fields) {
    accepted_ = fields.take<std::uint64_t>();
    return fields.is_whole() ? answer(RMEM_OK) : Step::broken;
}

Session::Step Session::flush(FieldReader fields, std::int64_t now_ns) {
    const std::uint64_t asked_ns = fields.take<std::uint64_t>();
    if (!fields.is_whole()) return Step::broken;
    const auto longest_ns =
        static_cast<std::int64_t>(std::min<std::uint64_t>(asked_ns, kLongestFlushNs));
    const int code = rmem_flush(node_, 0);
    if (code == RMEM_ETIMEDOUT && !has_waited(now_ns, longest_ns)) return Step::again;
    return code < 0 ? answer(code) : answer_number(static_cast<std::uint64_t>(code));
}

Session::Step Session::counter(FieldReader fields) {
    const auto text = fields.rest();
    if (text.size() > kMaxCounterNameBytes) return Step::broken;
    const std::string name(reinterpret_cast<const char*>(text.data()), text.size());
    std::uint64_t value = 0;
    const int code = rmem_counter(node_, name.c_str(), &value);
    return code < 0 ? answer(code) : answer_number(value);
}

Session::Step Session::state(Kind kind, FieldReader fields) {
    const auto of =
        static_cast<std::int32_t>(kind != Kind::is_member ? fields.take<std::uint32_t>() : 0);
    if (!fields.is_whole()) return Step::broken;
    const int code = kind == Kind::is_member  ? rmem_is_member(node_)
                     : kind == Kind::is_alive ? rmem_is_alive(node_, of)
                                              : rmem_is_present(node_, of);
    return code < 0 ? answer(code) : answer_number(static_cast<std::uint64_t>(code));
}

// ---- What is mapped

Session::Step Session::map(FieldReader fields) {
    const auto offset = fields.take<std::uint64_t>();
    const auto bytes = fields.take<std::uint64_t>();
    if (!fields.is_whole() || offset % kPageBytes != 0 || bytes % kPageBytes != 0 ||
        bytes > memory_bytes_ || offset > memory_bytes_ - bytes || maps_.size() == kMaxMaps) {
        return Step::broken;
    }
    for (std::uint64_t at = offset; at < offset + bytes; at += kPageBytes) {
        Page& page = pages_[at];
        if (page.twin == nullptr) page.twin = &twins_.join(at, page.is_due);
    }
    // There are more pages in a round now.
    const std::uint64_t round = looks_ + pages_.size();
    maps_.push_back(round);
    for (Due& due : interrupts_) due.looks = round;
    return answer(RMEM_OK);
}

void Session::client_has(std::uint64_t offset, std::span<const std::byte> data) {
    if (pages_.empty() || offset > memory_bytes_ || data.size() > memory_bytes_ - offset) return;
    const std::uint64_t end = offset + data.size();
    auto page = pages_.lower_bound(offset / kPageBytes * kPageBytes);
    for (; page != pages_.end() && page->first < end; ++page) {
        const std::uint64_t from = std::max(offset, page->first) - page->first;
        const std::uint64_t to = std::min(end, page->first + kPageBytes) - page->first;
        auto& [twin, is_due] = page->second;
        if (twin->due.size() > 1) {
            for (std::size_t at = from; at < to; at += kWordBytes) is_due.set(at / kWordBytes);
            is_due.set((to - 1) / kWordBytes);
            continue;
        }
        std::memcpy(twin->bytes.data() + from, data.data() + (page->first + from - offset),
                    to - from);
        if (from % kWordBytes != 0) is_due.set(from / kWordBytes);
        if (to % kWordBytes != 0) is_due.set(to / kWordBytes);
    }
}

/// Each stretch of words that the client does not have is a change.
void Session::compare(std::uint64_t offset, Page& page) {
    RMEM_CHECK(page.twin != nullptr);
    twins_.compare(offset, *page.twin);
    if (page.is_due.none()) return;
    for (std::size_t at = 0; at < kPageBytes; at += kWordBytes) {
        const std::size_t from = at;
        while (at < kPageBytes && page.is_due[at / kWordBytes]) at += kWordBytes;
        if (at == from) continue;
        FrameWriter(news_.bytes(), Kind::change)
            .put(writes_)
            .put(offset + from)
            .put(std::span<const std::byte>(page.twin->bytes).subspan(from, at - from));
    }
    page.is_due.reset();
}

std::size_t Session::look(std::size_t most) {
    std::size_t compared = 0;
    for (; compared < std::min(most, pages_.size()) && !is_full(news_); ++compared) {
        auto page = pages_.lower_bound(next_page_);
        if (page == pages_.end()) page = pages_.begin();
        compare(page->first, page->second);
        next_page_ = page->first + 1;
        ++looks_;
    }
    tell_what_is_due();
    RMEM_CHECK(is_bounded(news_));
    return compared;
}

void Session::tell_what_is_due() {
    while (!maps_.empty() && maps_.front() <= looks_) {
        maps_.pop_front();
        FrameWriter(news_.bytes(), Kind::shown).put(++shown_);
    }
    while (!interrupts_.empty() && interrupts_.front().looks <= looks_ && !is_full(news_)) {
        const rmem_interrupt& next = interrupts_.front().interrupt;
        FrameWriter(news_.bytes(), Kind::interrupt)
            .put(next.offset)
            .put(next.value)
            .put(next.origin)
            .put(next.missed)
            .put(next.kind);
        interrupts_.pop_front();
    }
}

void Session::on_interrupt(const rmem_interrupt& interrupt) {
    missed_ += interrupt.missed;
    const bool is_accepted = interrupt.kind != RMEM_WORD_WRITTEN &&
                             interrupt.offset < RMEM_INTERRUPT_NUMBERS &&
                             (accepted_ >> interrupt.offset & 1U) != 0;
    if (!is_accepted) return;
    if (interrupts_.size() == kMaxInterrupts) {
        ++missed_;
        return;
    }
    const std::uint64_t looks = looks_ + pages_.size();
    RMEM_CHECK(interrupts_.empty() || interrupts_.back().looks <= looks);
    interrupts_.push_back({looks, interrupt});
    interrupts_.back().interrupt.missed = std::exchange(missed_, 0);
}

}  // namespace remote
