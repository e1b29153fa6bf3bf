// SPDX-License-Identifier: Apache-2.0

// The calls of scrproto.h: opening, and the memory.

#include "cards/scramnet_plus/process.hpp"

using namespace cards::scramnet_plus;

extern "C" {

// ---- Opening

int sp_cfg_read(int card) {
    return on_process([=](Process& process) { return process.choose(card); });
}

// Without the macro, which is for calls.
int(sp_scram_init)(int card) {
    return on_process([=](Process& process) { return process.map_all(card); });
}

int scr_reg_mm(int arg) {
    return on_process([=](Process& process) {
        if (arg == MAP) return process.map_registers();
        if (arg == UNMAP) return process.unmap(scr_registers_mapped);
        return no_argument("scr_reg_mm", arg, "MAP (0) or UNMAP (1)");
    });
}

int scr_mem_mm(int arg) {
    return on_process([=](Process& process) {
        if (arg == MAP) return process.map_memory();
        if (arg == UNMAP) return process.unmap(scr_memory_mapped);
        return no_argument("scr_mem_mm", arg, "MAP (0) or UNMAP (1)");
    });
}

int sp_plus_find(void) {
    return sp_plus_flag;
}

// ---- Memory

SCR_LONG_PTR get_base_mem(void) {
    void* memory = nullptr;
    const int result = on_process([&](Process& process) {
        memory = process.memory();
        if (memory != nullptr) return kDone;
        return refuse("the memory is not mapped; call sp_scram_init, or scr_mem_mm(MAP)");
    });
    return result == kDone ? static_cast<SCR_LONG_PTR>(memory) : nullptr;
}

unsigned long sp_mem_size(void) {
    return on_card(0UL, [](Card& card) { return card.memory_bytes(); });
}

void scr_mclr_mm(int arg) {
    scr_smem_mm(arg, 0);
}

void scr_smem_mm(int arg, unsigned long value) {
    tell_card([=](Card& card) {
        return on_part(
            "scr_smem_mm", arg, [&] { return card.fill(static_cast<std::uint32_t>(value)); },
            [&] { return card.fill_acrs(static_cast<std::uint8_t>(value)); });
    });
}

int scr_load_mm(char* path, int arg) {
    return on_card([=](Card& card) {
        return on_part(
            "scr_load_mm", arg, [&] { return card.load(path); },
            [&] { return card.load_acrs(path); });
    });
}

int scr_save_mm(char* path, int arg) {
    return on_card([=](Card& card) {
        return on_part(
            "scr_save_mm", arg, [&] { return card.save(path); },
            [&] { return card.save_acrs(path); });
    });
}

int scr_dma_read(void* user, unsigned long scr_offset, unsigned long num_bytes) {
    return on_card([=](Card& card) { return card.read(scr_offset, user, num_bytes); });
}

int scr_dma_write(void* user, unsigned long scr_offset, unsigned long num_bytes) {
    return on_card([=](Card& card) { return card.write(scr_offset, user, num_bytes); });
}

int sp_stm_mm(unsigned char mode) {
    return on_card([=](Card& card) { return card.set_byte_order(mode); }) == kDone ? TRUE : FALSE;
}

unsigned char sp_gtm_mm(void) {
    constexpr unsigned char kAsAtFirst = Long_mode;
    return on_card(kAsAtFirst, [](Card& card) { return card.byte_order(); });
}

}  // extern "C"
