-- SPDX-License-Identifier: Apache-2.0
-- Shows the writes of a reflective memory in Wireshark, from a file that `rmem replay --pcap` made.
--
--     wireshark -X lua_script:rmem.lua FILE.pcap       (or copy it into Wireshark's folder of plugins)
--     tshark -X lua_script:rmem.lua -r FILE.pcap -Y 'rmem.node == 2 && rmem.offset == 0x40'
--
-- rmem/recording/pcap_writer.hpp describes the packets. rmem.word finds a word of any place in a write.

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
    sampled = ProtoField.bool("rmem.flags.sampled", "Seen by looking, writer unknown", 16, nil, 0x10),
    applied = ProtoField.bool("rmem.flags.applied", "Says when it was applied", 16, nil, 0x20),
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
    for _, field in ipairs({ f.interrupt, f.me_last, f.at_start, f.missed, f.sampled, f.applied }) do
        flags:add_le(field, range)
    end
end

local function add_words(tree, buffer, offset, count)
    for i = 0, count - 1 do
        local range = buffer(HEADER_BYTES + i * WORD_BYTES, WORD_BYTES)
        local item = tree:add_le(f.word, range)
        item:set_text(string.format("0x%s: 0x%08x", (offset + i * WORD_BYTES):tohex(), range:le_uint()))
    end
end

local function summary(buffer, offset, count)
    if bit.band(buffer(2, 2):le_uint(), 0x8) ~= 0 then return "writes were missed here" end
    local text = string.format("0x%s: %d word%s", offset:tohex(), count, count == 1 and "" or "s")
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
    add_words(tree, buffer, offset, count)
    local behind = HEADER_BYTES + count * WORD_BYTES
    if bit.band(buffer(2, 2):le_uint(), 0x20) ~= 0 and length >= behind + 4 then
        tree:add_le(f.delay, buffer(behind, 4))
    end
    packet.cols.src = "node " .. buffer(4, 2):le_uint() .. " rank " .. buffer(6, 2):le_uint()
    packet.cols.info = summary(buffer, offset, count)
    return length
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, rmem)
