-- SPDX-License-Identifier: Apache-2.0
-- Shows the writes of a reflective memory in Wireshark: from a file that `rmem replay --pcap` made,
-- and in the datagrams of a ring on link udp, live or captured.
--
--     wireshark -X lua_script:rmem.lua FILE.pcap    (or copy it into Wireshark's folder of plugins)
--     tshark -X lua_script:rmem.lua -r FILE.pcap -Y 'rmem.node == 2 && rmem.offset == 0x40'
--     tshark -X lua_script:rmem.lua -i eth0 -f udp -Y rmem_udp
--
-- rmem/recording/pcap_writer.hpp describes the packets of a recording,
-- rmem/link/udp/protocol/format.hpp the datagrams. rmem.node, rmem.offset, rmem.words and rmem.word
-- are in both. rmem.word finds a word of any place in a write.

local rmem = Proto("rmem", "Reflective memory")
local HEADER_BYTES = 28
local WORD_BYTES = 4

local f = {
    version = ProtoField.uint8("rmem.version", "Version"),
    flags = ProtoField.uint16("rmem.flags", "Flags", base.HEX),
    interrupt = ProtoField.bool("rmem.flags.interrupt", "Interrupt mark", 16, nil, 0x1),
    me_last = ProtoField.bool("rmem.flags.me_last", "Write me last", 16, nil, 0x2),
    at_start = ProtoField.bool("rmem.flags.at_start", "Stood there at the start", 16, nil, 0x4),
    missed = ProtoField.bool("rmem.flags.missed", "Writes were missed here", 16, nil, 0x8),
    sampled = ProtoField.bool("rmem.flags.sampled", "Seen by looking, writer unknown", 16, nil,
        0x10),
    applied = ProtoField.bool("rmem.flags.applied", "Says when it was applied", 16, nil, 0x20),
    bytes = ProtoField.uint16("rmem.flags.bytes", "Only these bytes of its word (0: all)", base.HEX,
        nil, 0xf00),
    delay = ProtoField.uint32("rmem.delay", "Applied after (ns)"),
    node = ProtoField.uint16("rmem.node", "Node"),
    rank = ProtoField.uint16("rmem.rank", "Rank"),
    time = ProtoField.int64("rmem.time", "Time since the start (ns)"),
    offset = ProtoField.uint64("rmem.offset", "Offset", base.HEX),
    words = ProtoField.uint16("rmem.words", "Words"),
    word = ProtoField.uint32("rmem.word", "Word", base.HEX),
}
rmem.fields = f

local malformed = ProtoExpert.new("rmem.malformed", "Not a write of a reflective memory",
    expert.group.MALFORMED, expert.severity.ERROR)
rmem.experts = { malformed }

local function add_flags(tree, range)
    local flags = tree:add_le(f.flags, range)
    local all = { f.interrupt, f.me_last, f.at_start, f.missed, f.sampled, f.applied, f.bytes }
    for _, field in ipairs(all) do
        flags:add_le(field, range)
    end
end

-- `buffer` has the words alone.
local function add_words(tree, buffer, offset, count)
    for i = 0, count - 1 do
        local range = buffer(i * WORD_BYTES, WORD_BYTES)
        local item = tree:add_le(f.word, range)
        local place = (offset + i * WORD_BYTES):tohex()
        item:set_text(string.format("0x%s: 0x%08x", place, range:le_uint()))
    end
end

local function place_text(offset, count)
    return string.format("0x%s: %d word%s", offset:tohex(), count, count == 1 and "" or "s")
end

local function summary(buffer, offset, count)
    if bit.band(buffer(2, 2):le_uint(), 0x8) ~= 0 then return "writes were missed here" end
    local text = place_text(offset, count)
    if count == 1 then
        text = string.format("%s = 0x%08x", text, buffer(HEADER_BYTES, WORD_BYTES):le_uint())
    end
    return text
end

function rmem.dissector(buffer, packet, root)
    local length = buffer:len()
    packet.cols.protocol = "rmem"
    local tree = root:add(rmem, buffer())
    if length < HEADER_BYTES or buffer(0, 1):uint() ~= 1 then
        tree:add_proto_expert_info(malformed)
        return 0
    end
    local offset = buffer(16, 8):le_uint64()
    local count = buffer(24, 2):le_uint()
    tree:add(f.version, buffer(0, 1))
    add_flags(tree, buffer(2, 2))
    tree:add_le(f.node, buffer(4, 2))
    tree:add_le(f.rank, buffer(6, 2))
    tree:add_le(f.time, buffer(8, 8))
    tree:add_le(f.offset, buffer(16, 8))
    tree:add_le(f.words, buffer(24, 2))
    if length < HEADER_BYTES + count * WORD_BYTES then
        tree:add_proto_expert_info(malformed)
        return length
    end
    if count > 0 then add_words(tree, buffer(HEADER_BYTES, count * WORD_BYTES), offset, count) end
    local behind = HEADER_BYTES + count * WORD_BYTES
    if bit.band(buffer(2, 2):le_uint(), 0x20) ~= 0 and length >= behind + 4 then
        tree:add_le(f.delay, buffer(behind, 4))
    end
    packet.cols.src = "node " .. buffer(4, 2):le_uint() .. " rank " .. buffer(6, 2):le_uint()
    packet.cols.info = summary(buffer, offset, count)
    return length
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, rmem)

-- ---- Datagrams of link udp ---------------------------------------------------------------------

local rmem_udp = Proto("rmem_udp", "Reflective memory, link udp")
local MAGIC = 0x55454d52 -- "RMEU"
local WIRE_VERSION = 5
local WIRE_HEADER_BYTES = 56
local TAG_BYTES = 16
local PLACE_BYTES = 8
local SET_BYTES = 32

local TAGS = { [0] = "none", "AES-256-GCM", "ChaCha20-Poly1305" }
local STATES = { "joining", "member", "leaving", "returned" }
local SECTIONS = {
    "batch", "forwarded", "acks", "nak", "echo", "status", "join", "welcome", "admit",
    "snapshot request", "vector", "chunk", "padding", "greeting", "about",
}

local w = {
    version = ProtoField.uint8("rmem_udp.version", "Version"),
    tag_kind = ProtoField.uint8("rmem_udp.tag_kind", "Tag kind", base.DEC, TAGS),
    ring = ProtoField.uint64("rmem_udp.ring", "Ring", base.HEX),
    incarnation = ProtoField.uint64("rmem_udp.incarnation", "Incarnation"),
    salt = ProtoField.uint64("rmem_udp.salt", "Salt", base.HEX),
    number = ProtoField.uint64("rmem_udp.number", "Number of the datagram"),
    sent = ProtoField.int64("rmem_udp.sent", "Sent, origin's clock (ns)"),
    newest = ProtoField.uint32("rmem_udp.newest", "Newest batch, low bits"),
    payload = ProtoField.uint16("rmem_udp.payload", "Longest datagram that reaches the origin"),
    tag = ProtoField.bytes("rmem_udp.tag", "Tag"),
    section = ProtoField.uint8("rmem_udp.section", "Section", base.DEC, SECTIONS),
    flags = ProtoField.uint8("rmem_udp.flags", "Flags", base.HEX),
    sequence = ProtoField.uint64("rmem_udp.sequence", "Batch"),
    first_store = ProtoField.int64("rmem_udp.first_store", "First store, origin's clock (ns)"),
    interrupt = ProtoField.bool("rmem_udp.interrupt", "Interrupt mark", 8, nil, 0x1),
    bytes = ProtoField.uint8("rmem_udp.bytes", "Only these bytes of its word (0: all)", base.HEX,
        nil, 0xf0),
    of = ProtoField.uint16("rmem_udp.of", "Of or to node"),
    up_to = ProtoField.uint32("rmem_udp.up_to", "All here up to batch, low bits"),
    nak = ProtoField.uint32("rmem_udp.nak", "NAK from batch, low bits"),
    state = ProtoField.uint16("rmem_udp.state", "State", base.DEC, STATES),
    ring_incarnation = ProtoField.uint64("rmem_udp.ring_incarnation", "Ring's incarnation",
        base.HEX),
    nodes = ProtoField.bytes("rmem_udp.nodes", "Nodes, a bit each"),
    nonce = ProtoField.uint64("rmem_udp.nonce", "Nonce", base.HEX),
    answer = ProtoField.uint64("rmem_udp.answer", "Nonce that is answered", base.HEX),
    about = ProtoField.string("rmem_udp.about", "Ring and settings"),
}
rmem_udp.fields = w
local refused = ProtoExpert.new("rmem_udp.malformed", "Not a datagram of this version of rmem",
    expert.group.MALFORMED, expert.severity.ERROR)
rmem_udp.experts = { refused }

-- The offset in bytes of a place, and its words.
local function place_of(range)
    local index = range(4, 1):uint() * 2 ^ 32 + range(0, 4):le_uint()
    local bytes = index * WORD_BYTES
    return UInt64.new(bytes % 2 ^ 32, math.floor(bytes / 2 ^ 32)), range(5, 2):le_uint()
end

local function add_place(tree, range)
    local offset, count = place_of(range)
    tree:add(f.offset, range(0, 5), offset)
    tree:add_le(f.words, range(5, 2))
    tree:add(w.interrupt, range(7, 1))
    tree:add(w.bytes, range(7, 1))
    return offset, count
end

-- The writes of a batch from `at` on; how many, and what the first one is. nil: cut off.
local function add_records(tree, body, at)
    local records, first = 0, nil
    while at < body:len() do
        if body:len() - at < PLACE_BYTES then return nil end
        local offset, count = place_of(body(at, PLACE_BYTES))
        local bytes = PLACE_BYTES + count * WORD_BYTES
        if count == 0 or body:len() - at < bytes then return nil end
        local text = place_text(offset, count)
        local record = tree:add(body(at, bytes), "Write " .. text)
        add_place(record, body(at, PLACE_BYTES))
        add_words(record, body(at + PLACE_BYTES, count * WORD_BYTES), offset, count)
        records, first, at = records + 1, first or text, at + bytes
    end
    return records, first
end

local function add_batch(tree, body, at)
    tree:add_le(w.sequence, body(at, 8))
    tree:add_le(w.first_store, body(at + 8, 8))
    local records, first = add_records(tree, body, at + 16)
    if not records then return nil end
    local text = "batch " .. body(at, 8):le_uint64():tonumber()
    if records == 1 then return text .. ", " .. first end
    return string.format("%s, %d writes", text, records)
end

-- Entries of `bytes` each, from `at` on.
local function add_list(tree, body, at, bytes, add)
    while body:len() - at >= bytes do
        add(tree, body(at, bytes))
        at = at + bytes
    end
    return at == body:len()
end

local function add_node(field, name)
    return function(tree, range)
        local entry = tree:add(range, string.format("%s node %d", name, range(0, 2):le_uint()))
        entry:add_le(w.of, range(0, 2))
        if field then entry:add_le(field, range(4, 4)) end
    end
end

-- Each shows the body of its section, which has this length at least, and returns what the summary
-- says of it; nil: malformed.
local SHOW = {
    { 16, function(tree, body) return add_batch(tree, body, 0) end },
    { 28, function(tree, body)
        tree:add_le(w.of, body(0, 2))
        tree:add_le(w.incarnation, body(4, 8))
        local text = add_batch(tree, body, 12)
        return text and string.format("of node %d: %s", body(0, 2):le_uint(), text)
    end },
    { 0, function(tree, body)
        return add_list(tree, body, 0, 8, add_node(w.up_to, "Of")) and "acks"
    end },
    { 0, function(tree, body)
        return add_list(tree, body, 0, 12, add_node(w.nak, "Of")) and "nak"
    end },
    { 0, function(tree, body)
        return add_list(tree, body, 0, 20, add_node(nil, "Of")) and "echo"
    end },
    { 48, function(tree, body)
        tree:add_le(w.ring_incarnation, body(0, 8))
        tree:add_le(w.state, body(12, 2))
        tree:add(w.nodes, body(16, SET_BYTES))
        return STATES[body(12, 2):le_uint()] or "status"
    end },
    { 40, function(tree, body)
        tree:add(w.nodes, body(8, SET_BYTES))
        return "join"
    end },
    { 52, function(tree, body)
        tree:add_le(w.of, body(0, 2))
        tree:add_le(w.ring_incarnation, body(12, 8))
        tree:add(w.nodes, body(20, SET_BYTES))
        return add_list(tree, body, 52, 12, add_node(nil, "Member"))
            and "welcome to node " .. body(0, 2):le_uint()
    end },
    { 28, function(tree, body)
        tree:add_le(w.of, body(0, 2))
        tree:add_le(w.sequence, body(12, 8))
        tree:add_le(w.ring_incarnation, body(20, 8))
        return "admit of node " .. body(0, 2):le_uint()
    end },
    { 8, function(tree, body)
        tree:add_le(w.of, body(0, 2))
        return add_list(tree, body, 8, PLACE_BYTES, add_place)
            and "snapshot request to node " .. body(0, 2):le_uint()
    end },
    { 48, function(tree, body)
        tree:add_le(w.of, body(0, 2))
        tree:add(w.nodes, body(16, SET_BYTES))
        return "vector for node " .. body(0, 2):le_uint()
    end },
    { 16, function(tree, body)
        tree:add_le(w.of, body(0, 2))
        local offset, count = add_place(tree, body(8, PLACE_BYTES))
        if body:len() == 16 + count * WORD_BYTES and count > 0 then
            add_words(tree, body(16, count * WORD_BYTES), offset, count)
        end
        return "chunk " .. place_text(offset, count)
    end },
    { 0, function() return "padding" end },
    { 0, function(tree, body)
        return add_list(tree, body, 0, 36, function(list, range)
            local entry = list:add(range, "To node " .. range(0, 2):le_uint())
            entry:add_le(w.of, range(0, 2))
            entry:add_le(w.nonce, range(4, 8))
            entry:add_le(w.answer, range(12, 8))
        end) and "greeting"
    end },
    { 0, function(tree, body)
        tree:add(w.about, body)
        return "about " .. body:string()
    end },
}

-- Of one datagram: what the summary says.
local function show_sections(tree, sections)
    local texts, at = {}, 0
    while at < sections:len() do
        if sections:len() - at < 4 then return nil end
        local bytes = 4 + sections(at + 2, 2):le_uint()
        if sections:len() - at < bytes then return nil end
        local type = sections(at, 1):uint()
        local name = SECTIONS[type] or "of a type that is not known here"
        local part = tree:add(sections(at, bytes), "Section " .. name)
        part:add(w.section, sections(at, 1))
        part:add(w.flags, sections(at + 1, 1))
        local show, text = SHOW[type], SECTIONS[type] or "?"
        if show and bytes - 4 < show[1] then return nil end
        if show and bytes > 4 then text = show[2](part, sections(at + 4, bytes - 4)) end
        if not text then return nil end
        texts[#texts + 1] = text
        at = at + bytes
    end
    return table.concat(texts, "; ")
end

-- Bytes of the datagram that begins here; nil: none of ours.
local function length_of(buffer)
    if buffer:len() < WIRE_HEADER_BYTES + TAG_BYTES then return nil end
    if buffer(0, 4):le_uint() ~= MAGIC then return nil end
    return WIRE_HEADER_BYTES + buffer(52, 2):le_uint() + TAG_BYTES
end

local function show_datagram(buffer, packet, root)
    local tree = root:add(rmem_udp, buffer)
    tree:add(w.version, buffer(4, 1))
    tree:add(w.tag_kind, buffer(5, 1))
    tree:add_le(f.node, buffer(6, 2))
    tree:add_le(w.ring, buffer(8, 8))
    tree:add_le(w.incarnation, buffer(16, 8))
    tree:add_le(w.salt, buffer(24, 8))
    tree:add_le(w.number, buffer(32, 8))
    tree:add_le(w.sent, buffer(40, 8))
    tree:add_le(w.newest, buffer(48, 4))
    tree:add_le(w.payload, buffer(54, 2))
    local behind = buffer:len() - TAG_BYTES
    local text = ""
    if buffer(4, 1):uint() ~= WIRE_VERSION then
        text = nil
    elseif behind > WIRE_HEADER_BYTES then
        text = show_sections(tree, buffer(WIRE_HEADER_BYTES, behind - WIRE_HEADER_BYTES))
    end
    tree:add(w.tag, buffer(behind, TAG_BYTES))
    if not text then tree:add_proto_expert_info(refused) end
    return string.format("node %d: %s", buffer(6, 2):le_uint(), text or "malformed")
end

-- Several may follow each other: a GSO batch that the host has not cut.
function rmem_udp.dissector(buffer, packet, root)
    local texts, at = {}, 0
    while at < buffer:len() do
        local length = length_of(buffer(at))
        if not length or length > buffer:len() - at then break end
        texts[#texts + 1] = show_datagram(buffer(at, length), packet, root)
        at = at + length
    end
    if at == 0 then return 0 end
    packet.cols.protocol = "rmem udp"
    packet.cols.info = table.concat(texts, " | ")
    return at
end

-- By the datagrams' magic, since the ports are the user's choice.
rmem_udp:register_heuristic("udp", function(buffer, packet, root)
    local length = length_of(buffer)
    if not length or length > buffer:len() then return false end
    rmem_udp.dissector(buffer, packet, root)
    return true
end)
