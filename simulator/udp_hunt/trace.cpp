// SPDX-License-Identifier: Apache-2.0
#include "simulator/udp_hunt/trace.hpp"

#include "rmem/link/udp/protocol/datagram.hpp"

#include <fmt/format.h>

#include <array>

namespace simulator::udp {

namespace {

using rmem::udp::Section;
using rmem::udp::SectionType;

std::string nodes_of(const rmem::udp::NodeSet& set) {
    std::string text;
    set.for_each(
        [&](unsigned node) { text += fmt::format("{}{}", text.empty() ? "" : ".", node); });
    return text.empty() ? "none" : text;
}

std::string describe_status(const Section& section) {
    const auto status = rmem::udp::entry_of<rmem::udp::Status>(section);
    constexpr std::array<const char*, 5> kStates = {"nothing", "joining", "member", "leaving",
                                                    "returned"};
    return fmt::format("status({} ring {} view {})",
                       kStates.at(static_cast<std::size_t>(status.state)),
                       status.ring_incarnation % 1'000'000'000'000, nodes_of(status.view));
}

std::string describe_list(const Section& section) {
    std::string text;
    if (section.type() == SectionType::acks) {
        for (const auto& ack : rmem::udp::list_of<rmem::udp::Ack>(section)) {
            text += fmt::format(" {}@{}", ack.origin.node, ack.up_to);
        }
        return "acks(" + text.substr(text.empty() ? 0 : 1) + ")";
    }
    for (const auto& nak : rmem::udp::list_of<rmem::udp::Nak>(section)) {
        text += fmt::format(" {}@{}+{}", nak.origin.node, nak.first, nak.count);
    }
    return "missing(" + text.substr(text.empty() ? 0 : 1) + ")";
}

std::string describe_greetings(const Section& section) {
    std::string text;
    for (const auto& greeting : rmem::udp::list_of<rmem::udp::Greeting>(section)) {
        text += fmt::format(" {} {} believes {}", greeting.to,
                            greeting.answer != 0 ? "answered" : "asked",
                            greeting.believed % 1'000'000'000'000);
    }
    return "greeting(" + text.substr(text.empty() ? 0 : 1) + ")";
}

std::string describe(const Section& section) {
    switch (section.type()) {
        case SectionType::batch:
            return fmt::format("batch({})", rmem::udp::Batch(section).sequence());
        case SectionType::forwarded: {
            const rmem::udp::ForwardedBatch forwarded(section);
            return fmt::format("forwarded({}@{})", forwarded.origin().node,
                               forwarded.batch().sequence());
        }
        case SectionType::acks:
        case SectionType::nak: return describe_list(section);
        case SectionType::echo: return "echo";
        case SectionType::status: return describe_status(section);
        case SectionType::join:
            return fmt::format("join(admitted by {})",
                               nodes_of(rmem::udp::entry_of<rmem::udp::Join>(section).admitted_by));
        case SectionType::welcome: {
            const rmem::udp::Welcome welcome(section);
            return fmt::format("welcome({} ring {} view {})", welcome.joiner().node,
                               welcome.ring_incarnation() % 1'000'000'000'000,
                               nodes_of(welcome.view()));
        }
        case SectionType::admit: {
            const auto admit = rmem::udp::entry_of<rmem::udp::Admit>(section);
            return fmt::format("admit({} from {})", admit.joiner.node, admit.first);
        }
        case SectionType::snapshot_request:
            return fmt::format("request({})",
                               rmem::udp::SnapshotRequest(section).request_id().to.node);
        case SectionType::vector:
            return fmt::format("vector({})", rmem::udp::Vector(section).request_id().to.node);
        case SectionType::chunk:
            return fmt::format("chunk({})", rmem::udp::Chunk(section).request_id().to.node);
        case SectionType::padding: return "padding";
        case SectionType::greeting: return describe_greetings(section);
        case SectionType::about: return "about";
    }
    return "?";
}

}  // namespace

std::string trace_header() {
    return fmt::format("{:>14} {:>4} {:<12} {:>5} {}\n", "time_us", "node", "event", "other",
                       "detail");
}

std::string describe(std::span<const std::byte> bytes) {
    rmem::udp::Datagram datagram;
    rmem::udp::Sections sections;
    if (bytes.size() < rmem::udp::kHeaderBytes) return "too short";
    const auto ring = rmem::load<std::uint64_t>(bytes.data() + 8);
    if (rmem::udp::read_datagram(bytes, ring, rmem::udp::kMaxPayload, datagram) !=
            rmem::udp::Refusal::none ||
        rmem::udp::read_sections(datagram, sections) != rmem::udp::Refusal::none) {
        return "damaged";
    }
    const rmem::udp::Header& header = datagram.header();
    std::string text = fmt::format("#{} incarnation {} newest {}", header.number,
                                   header.incarnation % 1'000'000'000'000, header.newest);
    for (const Section& section : sections) text += " " + describe(section);
    return text;
}

void Trace::note(std::int64_t now, unsigned node, const char* what, std::uint64_t other,
                 std::uint64_t detail) {
    ++events_;
    hash_.mix(static_cast<std::uint64_t>(now));
    hash_.mix(node);
    hash_.add(what);
    hash_.mix(other);
    hash_.mix(detail);
    if (!line_) return;
    line_(fmt::format("{:>10}.{:03} {:>4} {:<12} {:>5} {}\n", now / 1000, now % 1000, node, what,
                      other, detail));
}

void Trace::note(std::int64_t now, unsigned node, const char* what, unsigned other,
                 std::span<const std::byte> datagram) {
    ++events_;
    hash_.mix(static_cast<std::uint64_t>(now));
    hash_.mix(std::uint64_t{node} << 32 | other);
    hash_.add(datagram);
    if (!line_) return;
    line_(fmt::format("{:>10}.{:03} {:>4} {:<12} {:>5} {}\n", now / 1000, now % 1000, node, what,
                      other, describe(datagram)));
}

}  // namespace simulator::udp
