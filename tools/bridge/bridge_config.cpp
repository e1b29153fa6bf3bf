// SPDX-License-Identifier: Apache-2.0
#include "tools/bridge/bridge_config.hpp"

#include "rmem/base/limits.hpp"
#include "rmem/base/quantity.hpp"
#include "rmem/base/small_file.hpp"
#include "rmem/ring/config.hpp"
#include "tools/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace tools {

using nlohmann::json;

namespace {

constexpr const char* kFar = "far";

/// An object of the file, with its name for sentences.
class Object {
public:
    Object(std::string file, std::string name, const json& value)
        : file_(std::move(file)), name_(std::move(name)), value_(value) {
        if (!value.is_object()) refuse("is no object; give { … }");
    }

    [[noreturn]] void refuse(const std::string& problem) const {
        throw rmem::Error(rmem::Errc::invalid_argument,
                          fmt::format("{}: {} {}", file_, name_, problem));
    }
    void knows(std::initializer_list<std::string_view> keys) const {
        for (const auto& [key, value] : value_.items()) {
            if (std::find(keys.begin(), keys.end(), key) == keys.end())
                refuse(fmt::format("has '{}', which means nothing here; give {}", key,
                                   fmt::join(keys, ", ")));
        }
    }
    bool has(const char* key) const { return value_.contains(key); }
    const json& value(const char* key) const {
        if (!has(key)) refuse(fmt::format("has no '{}'; give it", key));
        return value_[key];
    }
    Object object(const char* key) const { return {file_, fmt::format("'{}'", key), value(key)}; }
    std::string text(const char* key) const {
        if (!value(key).is_string()) refuse(fmt::format("has a '{}' that is no text", key));
        return value(key).get<std::string>();
    }
    std::uint64_t number(const char* key) const { return number(key, value(key)); }
    std::uint64_t number(const char* key, std::uint64_t otherwise) const {
        return has(key) ? number(key) : otherwise;
    }
    /// 64, "64K" or "0x40".
    std::uint64_t number(const char* key, const json& found) const {
        if (found.is_number_unsigned()) return found.get<std::uint64_t>();
        if (!found.is_string())
            refuse(
                fmt::format("has a '{}' that is no number; give one such as 4096, \"64K\" or "
                            "\"0x1000\"",
                            key));
        return rmem::parse_size(fmt::format("{}: {}, '{}'", file_, name_, key),
                                found.get<std::string>());
    }
    /// Of whole words.
    std::uint64_t place(const char* key) const { return place(key, value(key)); }
    std::uint64_t place(const char* key, const json& found) const {
        const std::uint64_t result = number(key, found);
        if (result % rmem::kWordBytes != 0 || result > rmem::kMaxUserBytes)
            refuse(fmt::format("has a '{}' of {}; give a multiple of {} within a ring's memory",
                               key, result, rmem::kWordBytes));
        return result;
    }
    const std::string& file() const { return file_; }
    auto value_items() const { return value_.items(); }

private:
    std::string file_, name_;
    const json& value_;
};

bool overlaps(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

// ---- Rings

BridgedRingConfig ring_of(const std::string& name, const Object& object) {
    BridgedRingConfig ring;
    ring.name = name;
    for (const auto& [key, value] : object.value_items()) {
        if (key == "table") continue;
        if (!key.starts_with("RMEM_") || !value.is_string())
            object.refuse(
                fmt::format("has '{}': give \"table\", and settings as texts, such as "
                            "\"RMEM_RING\": \"rig\"",
                            key));
        ring.settings.emplace_back(key, value.template get<std::string>());
    }
    if (!object.has("table"))
        object.refuse(
            "has no 'table'; give the offset of a place in its memory that no program "
            "uses, 4096 bytes for each node");
    ring.table = object.place("table");
    return ring;
}

FarConfig far_of(const Object& object) {
    object.knows({"listen", "connect", "key_file"});
    if (object.has("listen") == object.has("connect"))
        object.refuse("must have one of 'listen' and 'connect', an address and a port");
    FarConfig far;
    far.listens = object.has("listen");
    const char* const key = far.listens ? "listen" : "connect";
    far.address =
        remote::parse_address(fmt::format("{}: '{}'", object.file(), key), object.text(key));
    far.key_file = object.text("key_file");
    return far;
}

// ---- Regions

std::vector<rmem::WordRange> sync_of(const Object& object, std::uint64_t offset,
                                     std::uint64_t bytes) {
    std::vector<rmem::WordRange> ranges;
    if (!object.has("sync")) return ranges;
    const json& list = object.value("sync");
    if (!list.is_array()) object.refuse("has a 'sync' that is no list; give [[offset, bytes], …]");
    for (const json& each : list) {
        const bool is_pair = each.is_array() && each.size() == 2;
        const std::uint64_t at = object.place("sync", is_pair ? each[0] : each);
        const std::uint64_t length = is_pair ? object.place("sync", each[1]) : rmem::kWordBytes;
        if (at < offset || length == 0 || length > bytes || at - offset > bytes - length)
            object.refuse(fmt::format("has sync words at {:#x} that are not within it", at));
        ranges.push_back({at, length});
    }
    return ranges;
}

class Regions {
public:
    Regions(BridgeConfig& config, const Object& root) : config_(config), root_(root) {}

    void add(const json& value, std::size_t index) {
        const Object object(root_.file(), fmt::format("region {}", index), value);
        object.knows({"name", "from", "offset", "to", "at", "bytes", "sync", "bytes_per_second",
                      "writes_per_second"});
        const std::string name = object.text("name");
        if (name.empty() || name.size() > bridge::kMaxRingNameBytes)
            object.refuse(fmt::format("has a name of {} bytes; give 1 to {}", name.size(),
                                      bridge::kMaxRingNameBytes));
        const Object named(root_.file(), fmt::format("region '{}'", name), value);
        const std::uint64_t bytes = named.place("bytes");
        if (bytes == 0) named.refuse("has no bytes; give at least 4");
        BridgedRingConfig* const from = ring(named, "from");
        BridgedRingConfig* const to = ring(named, "to");
        if (from == to) named.refuse("goes to where it comes from; give two rings, or one and far");
        if (from != nullptr) send(*from, named, name, bytes);
        if (to != nullptr) receive(*to, named, name, bytes);
    }

private:
    /// Null: the far site's.
    BridgedRingConfig* ring(const Object& object, const char* key) {
        const std::string name = object.text(key);
        if (name == kFar && config_.far) return nullptr;
        const auto found =
            std::find_if(config_.rings.begin(), config_.rings.end(),
                         [&](const BridgedRingConfig& each) { return each.name == name; });
        if (found == config_.rings.end())
            object.refuse(
                fmt::format("has '{}' as its '{}', which is none of the rings", name, key));
        return &*found;
    }
    void check_new(const Object& object, std::size_t count) const {
        if (count == bridge::kMaxRegions)
            object.refuse(
                fmt::format("is one too many; a ring has at most {}", bridge::kMaxRegions));
    }
    void send(BridgedRingConfig& ring, const Object& object, const std::string& name,
              std::uint64_t bytes) {
        check_new(object, ring.sent.size() + ring.received.size());
        const std::uint64_t offset = object.place("offset");
        for (const auto& each : ring.sent) {
            if (each.name == name) object.refuse("is declared twice; give another name");
        }
        for (const auto& each : ring.received) {
            if (overlaps(offset, bytes, each.at, each.bytes))
                object.refuse(circle(each.name, ring.name));
        }
        ring.sent.push_back({name, offset, bytes, sync_of(object, offset, bytes),
                             object.number("bytes_per_second", 0),
                             object.number("writes_per_second", 0)});
    }
    void receive(BridgedRingConfig& ring, const Object& object, const std::string& name,
                 std::uint64_t bytes) {
        check_new(object, ring.sent.size() + ring.received.size());
        const std::uint64_t at = object.place("at");
        for (const auto& each : ring.received) {
            if (each.name == name) object.refuse("is declared twice; give another name");
            if (overlaps(at, bytes, each.at, each.bytes))
                object.refuse(
                    fmt::format("overlaps region '{}' in ring '{}': each word has one "
                                "owner; move one of them",
                                each.name, ring.name));
        }
        for (const auto& each : ring.sent) {
            if (overlaps(at, bytes, each.offset, each.bytes))
                object.refuse(circle(each.name, ring.name));
        }
        ring.received.push_back({name, at, bytes});
    }
    static std::string circle(const std::string& other, const std::string& ring) {
        return fmt::format(
            "overlaps region '{}' of the other way in ring '{}': words would go in "
            "a circle; move one of them",
            other, ring);
    }

    BridgeConfig& config_;
    const Object& root_;
};

}  // namespace

BridgeConfig parse_bridge_config(const std::string& file, const std::string& text) {
    json value;
    try {
        value = json::parse(text, nullptr, true, true);
    } catch (const json::parse_error& error) {
        const std::string_view before(text.data(), std::min(text.size(), error.byte - 1));
        const auto line = std::count(before.begin(), before.end(), '\n') + 1;
        throw rmem::Error(
            rmem::Errc::invalid_argument,
            fmt::format("{}:{}:{}: here this is no JSON any more; correct it: rmem-bridge(1) has "
                        "an example",
                        file, line, before.size() - (before.rfind('\n') + 1) + 1));
    }
    const Object root(file, "the file", value);
    root.knows({"rings", "far", "regions"});
    BridgeConfig config;
    const Object rings = root.object("rings");
    for (const auto& [name, ring] : rings.value_items()) {
        if (name == kFar) rings.refuse("has a ring 'far', which is the other site; rename it");
        config.rings.push_back(ring_of(name, Object(file, fmt::format("ring '{}'", name), ring)));
    }
    if (root.has("far")) config.far = far_of(root.object("far"));
    const std::size_t wanted = config.far ? 1 : 2;
    if (config.rings.size() != wanted)
        rings.refuse(fmt::format("has {} rings; give two, or one and 'far'", config.rings.size()));
    const json& regions = root.value("regions");
    if (!regions.is_array() || regions.empty())
        root.refuse("has no list of 'regions'; give at least one");
    Regions all(config, root);
    for (std::size_t i = 0; i < regions.size(); ++i) all.add(regions[i], i);
    return config;
}

BridgeConfig read_bridge_config(const std::string& file) {
    return parse_bridge_config(
        file, rmem::user_file(file, "the bridge's configuration", rmem::Errc::invalid_argument));
}

}  // namespace tools
