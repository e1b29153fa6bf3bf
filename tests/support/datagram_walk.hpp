// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reads a datagram as a node would and uses all that it gets: every byte of every view is looked
/// at, so that a sanitizer sees one outside, and the promises of
/// rmem/link/udp/protocol/datagram.hpp are checked.

#include "rmem/link/udp/protocol/datagram.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace rmem::test {

class DatagramWalk {
public:
    struct Result {
        udp::Refusal refusal = udp::Refusal::none;
        std::size_t sections = 0;
        std::size_t words = 0;  ///< of batches and chunks
    };

    /// Of a copy as long as the datagram, so that the program may not read bytes after it. Throws
    /// std::logic_error when a promise is broken.
    static Result run(std::span<const std::byte> bytes, std::uint64_t ring, std::size_t limit) {
        const std::vector<std::byte> copy(bytes.begin(), bytes.end());
        DatagramWalk walk;
        walk.read(copy, ring, limit);
        kept_sum = walk.sum_;
        return walk.result_;
    }

private:
    static void owe(bool promise, const char* what) {
        if (!promise) throw std::logic_error(what);
    }
    void look(std::span<const std::byte> bytes) {
        for (const std::byte byte : bytes) sum_ += std::to_integer<unsigned>(byte);
    }

    void read(std::span<const std::byte> bytes, std::uint64_t ring, std::size_t limit) {
        udp::Datagram datagram;
        result_.refusal = udp::read_datagram(bytes, ring, limit, datagram);
        if (result_.refusal != udp::Refusal::none) return;
        owe(datagram.covered().size() + datagram.tag().size() == bytes.size(), "size");
        owe(datagram.header().origin < kMaxNodes, "origin");
        look(datagram.covered());
        look(datagram.tag());
        udp::Sections sections;
        result_.refusal = udp::read_sections(datagram, sections);
        if (result_.refusal != udp::Refusal::none) {
            owe(sections.begin() == sections.end(), "a refused datagram shows no sections");
            return;
        }
        for (const udp::Section& section : sections) {
            ++result_.sections;
            look(section.body());
            use(section);
        }
    }

    void use(const udp::Section& section) {
        using udp::SectionType;
        switch (section.type()) {
            case SectionType::batch: return use(udp::Batch(section));
            case SectionType::forwarded:
                use_node(udp::ForwardedBatch(section).origin().node);
                return use(udp::ForwardedBatch(section).batch());
            case SectionType::acks:
                for (const auto& ack : udp::list_of<udp::Ack>(section)) use_node(ack.origin.node);
                return;
            case SectionType::nak:
                for (const auto& nak : udp::list_of<udp::Nak>(section)) {
                    use_node(nak.origin.node);
                    owe(nak.count > 0, "count");
                }
                return;
            case SectionType::echo:
                for (const auto& echo : udp::list_of<udp::Echo>(section)) use_node(echo.node.node);
                return;
            case SectionType::status:
                sum_ += udp::entry_of<udp::Status>(section).view.size();
                return;
            case SectionType::join:
                sum_ += udp::entry_of<udp::Join>(section).admitted_by.size();
                return;
            case SectionType::welcome: return use(udp::Welcome(section));
            case SectionType::admit:
                return use_node(udp::entry_of<udp::Admit>(section).joiner.node);
            case SectionType::snapshot_request: return use(udp::SnapshotRequest(section));
            case SectionType::vector: return use(udp::Vector(section));
            case SectionType::chunk: return use(udp::Chunk(section));
            case SectionType::padding: return;
            case SectionType::greeting:
                for (const auto& greeting : udp::list_of<udp::Greeting>(section)) {
                    owe(greeting.to < kMaxNodes, "node");
                }
                return;
            case SectionType::about: return;  // text: looked at as a body
        }
    }

    void use(const udp::Batch& batch) {
        owe(batch.sequence() > 0, "sequence");
        sum_ += static_cast<std::uint64_t>(batch.first_store_ns());
        for (const udp::Record& record : batch.records()) {
            use(record.place);
            owe(record.words.size() == record.place.words, "words of a record");
            use(record.words);
        }
    }
    void use(const udp::Welcome& welcome) {
        use_node(welcome.joiner().node);
        sum_ += welcome.cookie() + welcome.ring_incarnation() + welcome.view().size();
        for (const auto& member : welcome.incarnations()) use_node(member.node);
    }
    void use(const udp::SnapshotRequest& request) {
        use_node(request.request_id().to.node);
        for (const udp::Place& place : request.parts()) use(place);
    }
    void use(const udp::Vector& vector) {
        use_node(vector.request_id().to.node);
        vector.for_each([this](unsigned origin, std::uint32_t low) {
            use_node(origin);
            sum_ += low;
        });
    }
    void use(const udp::Chunk& chunk) {
        use_node(chunk.request_id().to.node);
        use(chunk.place());
        owe(chunk.words().size() == (chunk.is_zeros() ? 0 : chunk.place().words),
            "words of a chunk");
        use(chunk.words());
    }
    void use(const udp::Place& place) {
        owe(place.words > 0, "a place has words");
        owe(place.index < udp::kPlaceIndices && place.index + place.words <= udp::kPlaceIndices,
            "a place does not wrap");
        const std::uint64_t behind = (place.index + place.words) * kWordBytes;
        owe(place.is_inside(behind) && !place.is_inside(behind - 1), "is_inside");
    }
    void use(const udp::Words& words) {
        for (std::size_t i = 0; i < words.size(); ++i) sum_ += words[i];
        result_.words += words.size();
    }
    static void use_node(unsigned node) { owe(node < kMaxNodes, "a node's id"); }

    Result result_;
    std::uint64_t sum_ = 0;
    static inline volatile std::uint64_t kept_sum = 0;  // so that no look is left out
};

}  // namespace rmem::test
