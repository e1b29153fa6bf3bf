// SPDX-License-Identifier: Apache-2.0
#include "simulator/mpi_hunt/model.hpp"

#include "rmem/base/check.hpp"
#include "simulator/mpi_hunt/bytes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace simulator::mpi {

using mpi_channel::PacketType;
using mpi_channel::Status;

// ---- Deaths

unsigned Model::alive() const {
    return static_cast<unsigned>(std::count(alive_.begin(), alive_.end(), true));
}

void Model::loses(unsigned at, unsigned from) {
    auto& lost = lost_.at(at);
    lost.at(from) = true;
    if (is_alive(from)) complain(at, fmt::format("it has given up rank {}, which is alive", from));
    unexpected_.at(at).remove_if([&](const Sent* sent) {
        return sent->from == from && (sent->is_rendezvous || !sent->is_whole);
    });
    const bool are_all = std::count(lost.begin(), lost.end(), true) + 1 == kRanks;
    posted_.at(at).remove_if([&](Waiting* waiting) {
        const Source wanted = waiting->wanted.source;
        if (wanted != from && !(are_all && wanted == mpi_channel::kAnySource)) return false;
        waiting->posted = false;
        waiting->cancelled = waiting->hopeless = true;
        return true;
    });
}

// ---- Requests

Sent& Model::sends(unsigned from, unsigned to, std::size_t size) {
    Sent& sent = all_sent_.emplace_back();
    sent.from = from;
    sent.to = to;
    sent.number = numbers_.at(from)++;
    sent.size = size;
    sent.bytes.resize(size);
    fill(sent.bytes, from, sent.number);
    to_come_.at(from).at(to).push_back(&sent);
    ++count_;
    return sent;
}

Waiting& Model::receives(unsigned at, std::size_t capacity) {
    Waiting& waiting = all_waiting_.emplace_back();
    waiting.at = at;
    waiting.buffer.assign(capacity, kUntouched);
    return waiting;
}

bool Model::fits(const Waiting& waiting, const Sent& sent) {
    return waiting.untagged == sent.untagged &&
           waiting.wanted.fits({sent.from, sent.tag, sent.size});
}

/// The message's place in the receive; that is no longer posted if it is over.
void Model::take(Waiting& waiting, Sent& sent) {
    RMEM_CHECK(!sent.taken && waiting.ended == 0);
    const std::size_t room = waiting.buffer.size() - waiting.used;
    Take& taken = waiting.takes.emplace_back();
    taken.sent = &sent;
    taken.placement.at = waiting.used;
    taken.placement.bytes = std::min(room, sent.size);
    taken.placement.cut = sent.size > room;
    waiting.used += taken.placement.bytes;
    sent.taken = true;
    if (waiting.least != 0 && room - taken.placement.bytes >= waiting.least) return;
    if (waiting.posted) posted_.at(waiting.at).remove(&waiting);
    waiting.posted = false;
    taken.placement.last = true;
}

void Model::posts(Waiting& waiting) {
    RMEM_CHECK(!waiting.posted && waiting.takes.empty());
    auto& unexpected = unexpected_.at(waiting.at);
    for (auto it = unexpected.begin(); it != unexpected.end();) {
        const auto here = it++;
        if (!fits(waiting, **here)) continue;
        Sent& sent = **here;
        unexpected.erase(here);
        take(waiting, sent);
        if (waiting.takes.back().placement.last) return;
    }
    const Source wanted = waiting.wanted.source;
    if (wanted != mpi_channel::kAnySource && has_lost(waiting.at, wanted)) {
        waiting.cancelled = waiting.hopeless = true;
        return;
    }
    waiting.posted = true;
    posted_.at(waiting.at).push_back(&waiting);
}

bool Model::cancels(Waiting& waiting) {
    if (!waiting.posted) return false;
    posted_.at(waiting.at).remove(&waiting);
    waiting.posted = false;
    waiting.cancelled = true;
    return true;
}

Sent* Model::peeks(unsigned at, const Wanted& wanted, bool untagged) {
    const auto& unexpected = unexpected_.at(at);
    const auto it = std::find_if(unexpected.begin(), unexpected.end(), [&](const Sent* sent) {
        return sent->untagged == untagged && wanted.fits({sent->from, sent->tag, sent->size});
    });
    return it == unexpected.end() ? nullptr : *it;
}

void Model::claims(Sent& sent) {
    const std::size_t claimed = unexpected_.at(sent.to).remove(&sent);
    RMEM_CHECK(claimed == 1);
}

void Model::receives_claimed(Sent& sent, Waiting& waiting) {
    waiting.least = 0;
    take(waiting, sent);
}

void Model::discards(Sent& sent) {
    sent.taken = true;
}

// ---- What comes

void Model::arrives(unsigned at, unsigned from, const mpi_channel::Packet& packet) {
    const PacketType type = packet.header.type;
    if (has_lost(at, from)) return complain(at, "a packet came of a rank that it has given up");
    if (type == PacketType::flow) findings_.cover(CoverageMark::flow_packet);
    if (type == PacketType::bundle) findings_.cover(CoverageMark::bundle);
    bulk_.at(at).at(from) = {};
    if (type > PacketType::request_send) return;  // of no message
    auto& to_come = to_come_.at(from).at(at);
    if (to_come.empty()) return complain(at, "a message came that nobody has sent");
    Sent& sent = *to_come.front();
    to_come.pop_front();
    if (packet.header.tag != sent.tag || packet.header.untagged != sent.untagged ||
        packet.size != sent.size || packet.header.has_data != sent.data.has_value()) {
        complain(at,
                 fmt::format("the arrival of rank {} is not its message {}", from, sent.number));
    }
    sent.arrived = true;
    sent.is_rendezvous = type == PacketType::request_send;
    sent.is_whole = type == PacketType::short_message || sent.size == 0;
    if (type == PacketType::long_message) bulk_.at(at).at(from) = {&sent, sent.size};
    auto& posted = posted_.at(at);
    const auto fit = std::find_if(posted.begin(), posted.end(),
                                  [&](const Waiting* waiting) { return fits(*waiting, sent); });
    if (fit != posted.end()) return take(**fit, sent);
    unexpected_.at(at).push_back(&sent);
    check_memory(at, from);
}

/// Of a sender's unexpected messages that have come without a question.
void Model::check_memory(unsigned at, unsigned from) {
    std::size_t bytes = 0;
    for (const Sent* sent : unexpected_.at(at)) {
        if (sent->from == from && !sent->is_rendezvous) bytes += sent->size;
    }
    if (bytes <= mpi_channel::kCredit) return;
    complain(at, fmt::format("{} bytes of rank {} are kept, without credit", bytes, from));
}

void Model::comes(unsigned at, unsigned from, std::size_t bytes) {
    Bulk& bulk = bulk_.at(at).at(from);
    if (bulk.of == nullptr) return;
    bulk.left -= std::min(bulk.left, bytes);
    if (bulk.left == 0) bulk.of->is_whole = true;
}

void Model::completed(unsigned at, const Completion& completion) {
    if (completion.of == Completion::Of::send) return sent_completed(at, completion);
    received(at, completion);
}

void Model::sent_completed(unsigned at, const Completion& completion) {
    Sent& sent = *static_cast<Sent*>(completion.context);
    const std::string which = fmt::format("its send {} to rank {}", sent.number, sent.to);
    if (sent.from != at || sent.ended++ != 0) complain(at, which + " ended twice");
    if (completion.status == Status::ok) {
        if (sent.silent) complain(at, which + " was to be silent, and told of its end");
        if (sent.after_match && !sent.taken) complain(at, which + " ended before its receive");
    } else if (completion.status != Status::gone || is_alive(sent.to)) {
        complain(at, which + "  failed, though its receiver is alive");
    } else {
        findings_.cover(CoverageMark::send_gone);
    }
    std::fill(sent.bytes.begin(), sent.bytes.end(), kUntouched);  // they are the program's again
}

void Model::received(unsigned at, const Completion& completion) {
    Waiting& waiting = *static_cast<Waiting*>(completion.context);
    if (waiting.at != at || waiting.ended != 0) {
        return complain(at, "a receive was told of after its end");
    }
    const auto take =
        std::find_if(waiting.takes.begin(), waiting.takes.end(), [&](const Take& each) {
            return !each.told && each.sent->from == completion.envelope.source &&
                   each.sent->tag == completion.envelope.tag &&
                   each.sent->size == completion.envelope.size &&
                   each.sent->data == completion.data && each.placement.at == completion.at;
        });
    if (take != waiting.takes.end()) {
        take->told = true;
        check_content(waiting, *take, completion);
    } else if (completion.status == Status::cancelled) {
        if (!waiting.cancelled || waiting.hopeless) complain(at, "a receive was not cancelled");
        findings_.cover(CoverageMark::cancelled);
    } else if (completion.status == Status::gone) {
        if (!waiting.hopeless) complain(at, "a receive ended, though its senders are alive");
        findings_.cover(CoverageMark::receive_gone);
    } else {
        complain(at, fmt::format("a receive got {} bytes of rank {}, tag {}, which were not for it",
                                 completion.envelope.size, completion.envelope.source,
                                 completion.envelope.tag));
    }
    note_last(waiting, completion);
}

void Model::check_content(Waiting& waiting, const Take& take, const Completion& completion) {
    const Sent& sent = *take.sent;
    const std::string which = fmt::format("message {} of rank {}", sent.number, sent.from);
    if (completion.status == Status::gone) {
        if (is_alive(sent.from))
            complain(waiting.at, which + "  is gone, though its sender is alive");
        return findings_.cover(CoverageMark::receive_gone);
    }
    ++findings_.messages;
    if (!is_alive(sent.from)) findings_.cover(CoverageMark::drained);
    if (take.placement.cut) findings_.cover(CoverageMark::cut);
    if (sent.from == waiting.at) findings_.cover(CoverageMark::to_self);
    if (waiting.takes.size() == 2) findings_.cover(CoverageMark::several);
    if (waiting.wanted.source == mpi_channel::kAnySource) findings_.cover(CoverageMark::from_any);
    if (completion.status != (take.placement.cut ? Status::cut : Status::ok) ||
        completion.bytes != take.placement.bytes || completion.untagged != sent.untagged) {
        complain(waiting.at, which + "  was reported otherwise than it was sent");
    }
    const auto bytes = std::span(waiting.buffer).subspan(take.placement.at, take.placement.bytes);
    if (!matches(bytes, sent.from, sent.number)) {
        complain(waiting.at, fmt::format("{}, of {} bytes, has other bytes", which, sent.size));
    }
}

/// Whether this was to be the receive's last completion; then its bytes are the program's again.
void Model::note_last(Waiting& waiting, const Completion& completion) {
    const bool is_last = !waiting.posted && std::all_of(waiting.takes.begin(), waiting.takes.end(),
                                                        [](const Take& take) { return take.told; });
    if (completion.last != is_last) {
        complain(waiting.at, is_last ? "a receive is over, and does not say so"
                                     : "a receive says that it is over, and is not");
    }
    if (!is_last) return;
    ++waiting.ended;
    const auto rest = std::span(waiting.buffer).subspan(waiting.used);
    if (std::any_of(rest.begin(), rest.end(), [](std::byte b) { return b != kUntouched; })) {
        complain(waiting.at, "bytes after the received ones have changed");
    }
    waiting.sum = sum_of(waiting.buffer);
}

// ---- The end

std::string Model::missing_of(const Sent& sent) const {
    if (!is_alive(sent.from)) return {};
    const bool must_end = !sent.silent && sent.ended == 0;
    if (must_end) return "it never ended";
    if (!is_alive(sent.to)) return {};
    if (!sent.arrived) return "it never came";
    return sent.taken ? "" : "nobody received it";
}

std::string Model::missing_of(const Waiting& waiting) const {
    if (!is_alive(waiting.at) || waiting.ended != 0) return {};
    const auto open = std::find_if(waiting.takes.begin(), waiting.takes.end(),
                                   [](const Take& take) { return !take.told; });
    if (open != waiting.takes.end()) {
        return fmt::format("message {} of rank {}, which it has taken, was not told",
                           open->sent->number, open->sent->from);
    }
    return waiting.posted ? "" : "it is over";
}

bool Model::is_settled() const {
    const auto is_done = [this](const auto& request) { return missing_of(request).empty(); };
    return std::all_of(all_sent_.rbegin(), all_sent_.rend(), is_done) &&
           std::all_of(all_waiting_.rbegin(), all_waiting_.rend(), is_done);
}

void Model::check_end() {
    for (const Sent& sent : all_sent_) {
        if (const std::string missing = missing_of(sent); !missing.empty()) {
            complain(sent.from, fmt::format("its send {} of {} bytes to rank {}: {}", sent.number,
                                            sent.size, sent.to, missing));
        }
    }
    for (const Waiting& waiting : all_waiting_) {
        if (const std::string missing = missing_of(waiting); !missing.empty()) {
            complain(waiting.at, "a receive never ended: " + missing);
        }
        if (waiting.ended != 0 && sum_of(waiting.buffer) != waiting.sum) {
            complain(waiting.at, "the bytes of a receive have changed after its end");
        }
    }
}

void Model::complain(unsigned rank, const std::string& sentence) {
    findings_.violate(fmt::format("rank {}: {}", rank, sentence));
}

}  // namespace simulator::mpi
