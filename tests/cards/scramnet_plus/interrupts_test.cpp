// SPDX-License-Identifier: Apache-2.0

/// Interrupts of SCRAMNet+ cards: ACRs, the FIFO, arming.

#include "tests/support/sanitizers.hpp"
#include "tests/support/scramnet_cards.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/time.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

namespace rmem::test {
namespace {

using Addresses = std::vector<std::uint32_t>;

/// The next, by the call.
std::optional<std::uint32_t> taken() {
    std::uint32_t address = 0;
    if (scr_read_int_fifo(&address) == 0) return std::nullopt;
    return address;
}

struct Interrupts : PlusCardsOnLinks {
    const PlusCard card{0};
    const Peer peer{1};
    static constexpr unsigned kReceiving = 0x812b;

    /// What comes until the interrupt of `last`, which is part of it.
    static Addresses until(std::uint32_t last) {
        Addresses found;
        EXPECT_TRUE(comes([&] {
            while (const auto address = taken()) {
                found.push_back(*address);
                if (*address == last) return true;
            }
            return false;
        }));
        return found;
    }
};
CARDS_ON_ALL_LINKS(Interrupts);

TEST_P(Interrupts, a_word_interrupts_where_its_writer_and_its_reader_have_enabled_it) {
    scr_acr_write(0x10, ACR_RIE);
    scr_acr_write(0x12, ACR_RIE | ACR_HIPRO);
    set_csr(SCR_CSR0, kReceiving);
    EXPECT_EQ(scr_acr_read(0x12), ACR_RIE | ACR_HIPRO);
    EXPECT_EQ(scr_acr_read(0x11), 0);
    // Of 0x40 it is marked and watched, of 0x44 marked, of 0x48 both.
    ASSERT_EQ(rmem_mark(peer, 0x40, 12), RMEM_OK);
    for (const std::size_t offset : {0x40U, 0x44U, 0x48U})
        ASSERT_EQ(rmem_write_word(peer, offset, 1), RMEM_OK);
    EXPECT_EQ(until(0x48), (Addresses{0x40, 0x48}));
    // Not marked by its writer.
    ASSERT_EQ(rmem_unmark(peer, 0x40, 4), RMEM_OK);
    ASSERT_EQ(rmem_write_word(peer, 0x40, 2), RMEM_OK);
    ASSERT_EQ(rmem_write_word(peer, 0x48, 2), RMEM_OK);
    EXPECT_EQ(until(0x48), (Addresses{0x48}));
    // No longer watched.
    scr_acr_write(0x12, 0);
    scr_acr_write(0x11, ACR_RIE);
    ASSERT_EQ(rmem_write_word(peer, 0x48, 3), RMEM_OK);
    ASSERT_EQ(rmem_write_word(peer, 0x44, 3), RMEM_OK);
    EXPECT_EQ(until(0x44), (Addresses{0x44}));
}

TEST_P(Interrupts, own_transfers_interrupt_others_where_the_acr_says_so) {
    ASSERT_EQ(rmem_watch(peer, 0, kBytes, RMEM_MARKED), RMEM_OK);
    scr_acr_write(1, ACR_TIE);
    EXPECT_EQ(write_word(4, 1), 0);
    set_csr(SCR_CSR0, CSR0_NIE);
    EXPECT_EQ(write_word(0, 2), 0);
    EXPECT_EQ(write_word(4, 2), 0);
    set_csr(SCR_CSR0, CSR0_NIE | CSR0_OTF);
    EXPECT_EQ(write_word(8, 3), 0);
    set_csr(SCR_CSR0, 0);
    EXPECT_EQ(write_word(4, 4), 0);
    set_csr(SCR_CSR0, CSR0_NIE);
    EXPECT_EQ(write_word(4, 5), 0);
    for (const auto& [offset, value] : {std::pair{4U, 2U}, {8U, 3U}, {4U, 5U}}) {
        rmem_interrupt interrupt;
        ASSERT_EQ(rmem_next_interrupt(peer, &interrupt, 30'000'000'000), RMEM_OK);
        EXPECT_EQ(interrupt.offset, offset);
        EXPECT_EQ(interrupt.origin, 0U);
        // The word's value when it was raised: there the next one may have been written.
        if (offset == 8) {
            EXPECT_EQ(interrupt.value, value);
        }
    }
}

TEST_P(Interrupts, overrides_take_every_interrupt_and_every_write) {
    ASSERT_EQ(rmem_mark(peer, 0x80, 4), RMEM_OK);
    // Of all words, those that are marked.
    set_csr(SCR_CSR0, CSR0_HIE | CSR0_ORF);
    ASSERT_EQ(rmem_write_word(peer, 0x84, 1), RMEM_OK);
    ASSERT_EQ(rmem_write_word(peer, 0x80, 1), RMEM_OK);
    EXPECT_EQ(until(0x80), (Addresses{0x80}));
    // Of all words, all writes.
    set_csr(SCR_CSR8, CSR8_IOVR);
    ASSERT_EQ(rmem_write_word(peer, 0x84, 2), RMEM_OK);
    ASSERT_EQ(rmem_write_word(peer, 0x80, 2), RMEM_OK);
    EXPECT_EQ(until(0x80), (Addresses{0x84, 0x80}));
    // Of words with RIE, all writes.
    scr_acr_write(0x22, ACR_RIE);
    set_csr(SCR_CSR0, CSR0_MME);
    for (const std::size_t offset : {0x80U, 0x84U, 0x88U})
        ASSERT_EQ(rmem_write_word(peer, offset, 3), RMEM_OK);
    EXPECT_EQ(until(0x88), (Addresses{0x88}));
    // None.
    set_csr(SCR_CSR0, 0);
    ASSERT_EQ(rmem_write_word(peer, 0x88, 4), RMEM_OK);
    EXPECT_TRUE(comes([] { return get_base_mem()[0x22] == 4; }));
    EXPECT_EQ(taken(), std::nullopt);
}

TEST_P(Interrupts, a_fifo_that_is_full_keeps_the_last_and_says_so) {
    scr_smem_mm(ACR, ACR_RIE);
    set_csr(SCR_CSR8, CSR8_IOVR);
    set_csr(SCR_CSR0, kReceiving);
    for (std::uint32_t i = 0; i < 1030; ++i) {
        const std::size_t offset = i * 4;
        EXPECT_TRUE(comes([&] { return rmem_write_word(peer, offset, i + 1) == RMEM_OK; }));
    }
    ASSERT_EQ(rmem_flush(peer, 30'000'000'000), RMEM_OK);
    EXPECT_TRUE(comes([] { return get_base_mem()[1029] == 1030; }));
    Addresses found;
    while (const auto address = taken()) found.push_back(*address);
    ASSERT_EQ(found.size(), 1024U);
    for (std::uint32_t i = 0; i < 1024; ++i) EXPECT_EQ(found[i], (6 + i) * 4);
    EXPECT_NE(csr(SCR_CSR1) & CSR1_INTFF, 0U);
    EXPECT_EQ(csr(SCR_CSR1) & CSR1_INTFF, 0U) << "it is told once";
    // It goes on.
    ASSERT_EQ(rmem_write_word(peer, 0x60, 1), RMEM_OK);
    EXPECT_EQ(until(0x60), (Addresses{0x60}));
}

struct InterruptsOfAPlusCard : PlusCards {
    InterruptsOfAPlusCard() : PlusCards(LinkKind::direct) {}
    const PlusCard card{0};
    const Peer peer{1};

    /// Without anything else that would bring it in.
    static bool arrives() {
        pollfd waits{scr_csr_fd, POLLIN, 0};
        return ::poll(&waits, 1, 30'000) == 1;
    }
    static void expect_armed(bool is_armed) {
        EXPECT_EQ(csr(SCR_CSR1) & CSR1_IARM, is_armed ? unsigned{CSR1_IARM} : 0U);
    }
};

TEST_F(InterruptsOfAPlusCard, registers_4_and_5_show_the_oldest_until_4_is_read) {
    scr_smem_mm(ACR, ACR_RIE);
    set_csr(SCR_CSR8, CSR8_IOVR);
    set_csr(SCR_CSR0, CSR0_HIE | CSR0_MME);
    EXPECT_EQ(csr(SCR_CSR5), 0U);
    EXPECT_EQ(csr(SCR_CSR4), 0U);
    ASSERT_EQ(rmem_write_word(peer, 0x3ffc, 1), RMEM_OK);
    ASSERT_EQ(rmem_write_word(peer, 8, 1), RMEM_OK);
    ASSERT_TRUE(arrives());
    EXPECT_EQ(csr(SCR_CSR5), unsigned{CSR5_IFE});
    EXPECT_EQ(csr(SCR_CSR5), unsigned{CSR5_IFE});
    EXPECT_EQ(csr(SCR_CSR4), 0x3ffcU);
    rd_fifo fifo{};
    EXPECT_TRUE(comes([&] {
        scr_fifo_mm(RD_FIFO, &fifo);
        return fifo.mt_flag == 0;
    }));
    EXPECT_EQ(fifo.scr_fifo_ptr.ntr_addr, 8U);
    EXPECT_EQ(fifo.iff, 0);
    scr_fifo_mm(RD_FIFO, &fifo);
    EXPECT_EQ(fifo.mt_flag, 1);
    EXPECT_EQ(fifo.scr_fifo_ptr.ntr_addr, 0U);
}

struct DriverOfAPlusCard : InterruptsOfAPlusCard {
    DriverOfAPlusCard() {
        scr_acr_write(2, ACR_RIE);
        set_csr(SCR_CSR8, CSR8_IOVR);
        set_csr(SCR_CSR0, CSR0_HIE | CSR0_MME);
        set_csr(SCR_CSR1, 0);
    }
    void SetUp() override {
        if (kSanitized) GTEST_SKIP() << "the sanitizer's ioctl comes first";
    }
};

/// As programs for Linux do it: arm the card, wait, take one, arm it again.
TEST_F(DriverOfAPlusCard, waits_for_an_interrupt) {
    unsigned count = 0;
    std::thread writer([this] {
        for (std::uint32_t i = 1; i <= 50; ++i) {
            EXPECT_EQ(rmem_write_word(peer, 8, i), RMEM_OK);
            std::this_thread::sleep_for(std::chrono::microseconds(i * 20));
        }
    });
    for (unsigned i = 0; i < 50; ++i) {
        ASSERT_EQ(::ioctl(scr_csr_fd, WAIT_INTERRUPT, i % 2 == 0 ? &count : nullptr), 0);
        EXPECT_EQ(count, 1U);
        EXPECT_EQ(taken(), 8U);
        set_csr(SCR_CSR1, 0);
    }
    writer.join();
    int readable = -1;
    EXPECT_EQ(::ioctl(scr_csr_fd, FIONREAD, &readable), 0) << "another request is the system's";
    EXPECT_EQ(::ioctl(-1, WAIT_INTERRUPT, &count), -1);
}

TEST_F(DriverOfAPlusCard, waits_until_a_signal_of_the_program) {
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, &before);
    const itimerval soon{{0, 0}, {0, 50'000}};
    ::setitimer(ITIMER_REAL, &soon, nullptr);
    EXPECT_EQ(::ioctl(scr_csr_fd, WAIT_INTERRUPT, nullptr), -1);
    EXPECT_EQ(errno, EINTR);
    ::sigaction(SIGALRM, &before, nullptr);
}

TEST_F(DriverOfAPlusCard, sends_its_signal_with_an_interrupt) {
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
    EXPECT_EQ(::ioctl(scr_csr_fd, FLUSHSIG, nullptr), 0);
    ASSERT_EQ(::ioctl(scr_csr_fd, INTSIG, SET_SIG), 0);
    const timespec patience{30, 0}, now{};
    for (std::uint32_t i = 1; i <= 3; ++i) {
        ASSERT_EQ(rmem_write_word(peer, 8, i), RMEM_OK);
        EXPECT_EQ(::sigtimedwait(&usr1, nullptr, &patience), SIGUSR1);
        EXPECT_EQ(taken(), 8U);
        std::uint32_t none = 0;
        EXPECT_EQ(scr_read_int_fifo(&none), 0) << "and so the card is ready for the next";
    }
    ASSERT_EQ(::ioctl(scr_csr_fd, INTSIG, CLR_SIG), 0);
    ASSERT_EQ(rmem_write_word(peer, 8, 9), RMEM_OK);
    ASSERT_TRUE(arrives());
    EXPECT_EQ(::sigtimedwait(&usr1, nullptr, &now), -1);
    ::pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr);
}

TEST_F(InterruptsOfAPlusCard, an_interrupt_disarms_until_register_1_is_written) {
    EXPECT_EQ(scr_csr_fd, -1);
    scr_acr_write(2, ACR_RIE);
    set_csr(SCR_CSR8, CSR8_IOVR);
    set_csr(SCR_CSR0, CSR0_HIE | CSR0_MME);
    ASSERT_GE(scr_csr_fd, 0);
    expect_armed(false);
    set_csr(SCR_CSR1, 0);
    expect_armed(true);
    for (std::uint32_t i = 1; i <= 3; ++i) {
        ASSERT_EQ(rmem_write_word(peer, 8, i), RMEM_OK);
        ASSERT_TRUE(arrives());
        expect_armed(false);
        EXPECT_EQ(taken(), 8U);
        set_csr(SCR_CSR1, 0);
        expect_armed(true);
    }
}

TEST_F(InterruptsOfAPlusCard, resets_empty_the_fifo_alone) {
    scr_smem_mm(ACR, ACR_RIE);
    set_csr(SCR_CSR8, CSR8_IOVR);
    const auto fill = [&] {
        set_csr(SCR_CSR0, CSR0_HIE | CSR0_MME);
        for (const std::size_t offset : {0U, 4U, 8U})
            ASSERT_EQ(rmem_write_word(peer, offset, 1), RMEM_OK);
        EXPECT_TRUE(comes([] { return csr(SCR_CSR5) != 0; }));
    };
    fill();
    scr_fifo_mm(RST_FIFO, nullptr);
    EXPECT_EQ(csr(SCR_CSR5), 0U);
    EXPECT_EQ(csr(SCR_CSR0), unsigned{CSR0_HIE | CSR0_MME});
    fill();
    set_csr(SCR_CSR0, 0xf000);
    EXPECT_EQ(csr(SCR_CSR5), 0U);
    EXPECT_EQ(csr(SCR_CSR0), 0xf000U);
    EXPECT_EQ(scr_acr_read(1), ACR_RIE);
}

TEST_F(InterruptsOfAPlusCard, an_acr_is_of_a_long_word_that_there_is) {
    scr_acr_write(kBytes / 4 - 1, 0xff);
    EXPECT_EQ(scr_acr_read(kBytes / 4 - 1), 0x3f);
    scr_acr_write(kBytes / 4, ACR_RIE);
    expect_sentence("no long word 4096");
    EXPECT_EQ(scr_acr_read(kBytes / 4), 0);
    EXPECT_EQ(scr_acr_read(~0UL), 0);
    EXPECT_EQ(scr_read_int_fifo(nullptr), 0);
    expect_sentence("null pointer");
}

}  // namespace
}  // namespace rmem::test
