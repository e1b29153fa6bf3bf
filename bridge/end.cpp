// SPDX-License-Identifier: Apache-2.0
#include "bridge/end.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace bridge {

using rmem::FieldReader;

namespace {

/// Another site's text, for a terminal: letters, digits and the like.
std::string plain(std::span<const std::byte> text) {
    constexpr std::size_t kMax = 400;
    std::string result;
    for (const std::byte each : text.first(std::min(text.size(), kMax))) {
        const char letter = static_cast<char>(each);
        result += letter >= ' ' && letter <= '~' ? letter : '?';
    }
    return result;
}

std::string plain(const std::string& text) {
    return plain(std::as_bytes(std::span(text)));
}

}  // namespace

End::End(std::vector<SentRegion> sent, std::vector<ReceivedRegion> received)
    : sender_(std::move(sent)),
      receiver_(std::move(received)),
      paths_(sender_.regions()),
      received_(receiver_.regions()) {}

// ---- The line

void End::connect(std::int64_t now_ns) {
    RMEM_CHECK(!is_connected_);
    is_connected_ = true;
    messages_.emplace(kMaxBodyBytes);
    heard_ns_ = now_ns;
    ++counts_.lines;
    std::vector<Offer> offers;
    for (std::size_t r = 0; r < sender_.regions(); ++r)
        offers.push_back({sender_.region(r).name, sender_.region(r).bytes});
    write_open(bytes(), offers);
    for (std::size_t r = 0; r < paths_.size(); ++r)
        write_path(bytes(), static_cast<std::uint16_t>(r), paths_[r]);
    send_status(now_ns);
}

void End::disconnect() {
    if (is_connected_) ++counts_.lines_lost;
    is_connected_ = is_open_ = false;
    sender_.close_all();
    receiver_.begin();
    messages_.reset();
    for (Received& each : received_) each = {};
    round_trip_ = {};
    echo_ns_ = 0;
    told_ = 0;
    problem_.clear();
}

void End::fail(const std::string& sentence) {
    if (!is_broken()) problem_ = sentence;
}

void End::receive(std::span<const std::byte> came, std::int64_t now_ns) {
    RMEM_CHECK(is_connected_ && now_ns >= heard_ns_);
    heard_ns_ = now_ns;
    messages_->add(came);
    take_messages(now_ns);
}

void End::take_messages(std::int64_t now_ns) {
    while (!is_broken() && receiver_.delivery() == nullptr) {
        const auto message = messages_->front();
        if (!message) break;
        if (!take(*message, now_ns)) fail("the other end sends what no end of a bridge sends");
        messages_->pop();
    }
    if (messages_->is_broken()) fail("the other end sends what no end of a bridge sends");
}

void End::run(std::int64_t now_ns) {
    if (!is_connected_) return;
    take_messages(now_ns);
    sender_.pump(now_ns);
    if (receiver_.taken() != told_ || now_ns - status_ns_ >= kBeatNs) send_status(now_ns);
    if (now_ns - std::min(heard_ns_, sender_.silent_since_ns()) < kSilenceNs) return;
    fail(now_ns - heard_ns_ >= kSilenceNs
             ? "nothing has come from the other end for 10 s"
             : "the other end has taken nothing of what was sent for 10 s; its ring has no room");
}

std::int64_t End::due_ns(std::int64_t now_ns) const {
    if (!is_connected_) return rmem::kNever;
    return std::min(status_ns_ + kBeatNs, sender_.due_ns(now_ns));
}

// ---- What the other end says

bool End::take(const rmem::Frame& message, std::int64_t now_ns) {
    const Kind kind = kind_of(message);
    if (kind == Kind::open) return !is_open_ && take_open(message.body);
    if (!is_open_) return false;
    switch (kind) {
        case Kind::accept: return take_accept(message.body, now_ns);
        case Kind::refuse: return take_refuse(message.body);
        case Kind::path: return take_path(message.body);
        case Kind::frame: return receiver_.take(message.body);
        case Kind::status: return take_status(message.body, now_ns);
        case Kind::failed:
            fail(fmt::format("the other end says: {}", plain(message.body)));
            return true;
        case Kind::open: break;
    }
    return false;
}

bool End::take_open(std::span<const std::byte> body) {
    const auto opening = read_open(body);
    if (!opening) return false;
    if (opening->version != kVersion) {
        fail(
            fmt::format("the other end speaks version {} of the bridge's protocol and this one "
                        "{}; take both from one release",
                        opening->version, kVersion));
        MessageWriter(bytes(), Kind::failed).put(std::string_view(problem_));
        return true;
    }
    is_open_ = true;
    for (std::size_t i = 0; i < opening->offers.size(); ++i)
        take_offer(static_cast<std::uint16_t>(i), opening->offers[i]);
    for (std::size_t r = 0; r < received_.size(); ++r) {
        if (received_[r].number) continue;
        news_.push_back(
            fmt::format("the other end does not send region '{}'; declare it there "
                        "with \"to\": \"far\"",
                        receiver_.region(r).name));
    }
    return true;
}

void End::take_offer(std::uint16_t number, const Offer& offer) {
    const auto found = receiver_.find(offer.name);
    std::string problem;
    if (!found || received_[*found].number) {
        problem = fmt::format("region '{}' is not received here; declare it with \"from\": \"far\"",
                              plain(offer.name));
    } else if (receiver_.region(*found).bytes != offer.bytes) {
        problem = fmt::format("region '{}' has {} bytes there and {} here; make them equal",
                              plain(offer.name), offer.bytes, receiver_.region(*found).bytes);
    } else {
        received_[*found].number = number;
        return receiver_.call(number, *found);
    }
    news_.push_back(problem);
    write_refuse(bytes(), number, Reason::unknown_region, problem);
}

bool End::take_accept(std::span<const std::byte> body, std::int64_t now_ns) {
    FieldReader fields(body);
    const auto region = fields.take<std::uint16_t>();
    if (!fields.is_whole() || region >= sender_.regions()) return false;
    sender_.open(region, now_ns);
    return true;
}

bool End::take_refuse(std::span<const std::byte> body) {
    FieldReader fields(body);
    const auto region = fields.take<std::uint16_t>();
    const auto reason = fields.take<std::uint16_t>();
    if (region >= sender_.regions()) return false;
    sender_.close(region);
    if (reason == static_cast<std::uint16_t>(Reason::circle)) ++counts_.refused;
    news_.push_back(fmt::format("the other end refuses region '{}': {}",
                                sender_.region(region).name, plain(fields.rest())));
    return true;
}

bool End::take_path(std::span<const std::byte> body) {
    FieldReader fields(body);
    const auto number = fields.take<std::uint16_t>();
    const auto path = read_path(fields);
    if (!path) return false;
    // One that was refused is not called any more.
    if (const auto region = receiver_.called(number)) received_[*region].path = *path;
    return true;
}

bool End::take_status(std::span<const std::byte> body, std::int64_t now_ns) {
    const auto status = read_status(body);
    if (!status || !sender_.acknowledge(status->taken, now_ns)) return false;
    if (status->echoed_ns != 0) {
        // One that cannot be true changes nothing.
        static_cast<void>(
            round_trip_.add({status->echoed_ns, status->held_ns, status->sent_ns, now_ns}));
    }
    echo_ns_ = status->sent_ns;
    echo_came_ns_ = now_ns;
    return true;
}

void End::send_status(std::int64_t now_ns) {
    told_ = receiver_.taken();
    status_ns_ = now_ns;
    write_status(bytes(), {told_, now_ns, echo_ns_, echo_ns_ == 0 ? 0 : now_ns - echo_came_ns_});
}

// ---- The target

void End::delivered(std::int64_t now_ns) {
    RMEM_CHECK(receiver_.delivery() != nullptr);
    const Delivery& delivery = *receiver_.delivery();
    ++counts_.frames_made;
    counts_.writes_made += delivery.writes.size();
    for (const Delivery::Write& write : delivery.writes) counts_.bytes_made += write.words.size();
    receiver_.delivered();
    take_messages(now_ns);
}

std::optional<rmem::RoundTrip::Estimate> End::local_time(std::int64_t other_ns,
                                                         std::int64_t now_ns) const {
    const auto offset = round_trip_.offset(now_ns);
    std::int64_t local = 0;
    if (!offset || __builtin_sub_overflow(other_ns, offset->value_ns, &local)) return std::nullopt;
    return rmem::RoundTrip::Estimate{local, offset->error_ns};
}

// ---- Paths

void End::set_path(std::size_t region, const Path& path) {
    if (paths_[region] == path) return;
    paths_[region] = path;
    if (is_connected_) write_path(bytes(), static_cast<std::uint16_t>(region), path);
}

const Path* End::path_of(std::size_t region) const {
    return received_[region].path ? &*received_[region].path : nullptr;
}

void End::admit(std::size_t region) {
    if (!received_[region].number || receiver_.is_admitted(region)) return;
    receiver_.admit(region, true);
    received_[region].is_refused = false;
    MessageWriter(bytes(), Kind::accept).put(*received_[region].number);
}

void End::refuse(std::size_t region, const std::string& sentence) {
    if (!received_[region].number || received_[region].is_refused) return;
    receiver_.admit(region, false);
    received_[region].is_refused = true;
    ++counts_.refused;
    news_.push_back(sentence);
    write_refuse(bytes(), *received_[region].number, Reason::circle, sentence);
}

}  // namespace bridge
