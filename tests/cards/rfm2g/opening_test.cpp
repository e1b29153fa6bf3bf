// SPDX-License-Identifier: Apache-2.0

/// Opening RFM2g cards, what a handle tells, and what every call refuses.

#include "rmem/base/descriptor.hpp"
#include "tests/support/rfm2g_cards.hpp"
#include "tests/support/sanitizers.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <future>
#include <set>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;

struct OpeningCards : TwoCards {
    OpeningCards() : TwoCards(LinkKind::direct) {}

    static void expect_not_opened(const char* path, RFM2G_STATUS status, const char* part) {
        std::string text = path;
        RFM2GHANDLE card = nullptr;
        ::testing::internal::CaptureStderr();
        EXPECT_EQ(RFM2gOpen(text.data(), &card), status) << path;
        EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(part));
        EXPECT_EQ(card, nullptr);
    }
};

TEST_F(OpeningCards, a_path_names_a_unit_as_on_each_system) {
    for (const char* path :
         {"/dev/rfm2g1", "/dev/rfm2g/1", "\\\\.\\rfm2g1", "RFM2G_1", "rfm2g001"}) {
        std::string text = path;
        RFM2GHANDLE card = nullptr;
        char name[128];
        ASSERT_EQ(RFM2gOpen(text.data(), &card), RFM2G_SUCCESS) << path << rmem_last_error();
        EXPECT_EQ(got(RFM2gNodeID, card), 1U);
        EXPECT_EQ(RFM2gDeviceName(card, name), RFM2G_SUCCESS);
        EXPECT_STREQ(name, path);
        EXPECT_EQ(RFM2gClose(&card), RFM2G_SUCCESS);
        EXPECT_EQ(card, nullptr);
    }
}

TEST_F(OpeningCards, a_unit_that_is_not_there_says_how_to_start_one) {
    expect_not_opened("/dev/rfm2g3", RFM2G_NO_RFM2G_BOARD, "rmem node --unit 3");
    for (const char* path :
         {"/dev/null", "", "7", "/dev/rfm2g", "/dev/rfm2g256", "/dev/rfm2gx1", "/dev/rfm2g0001"}) {
        expect_not_opened(path, RFM2G_NO_RFM2G_BOARD, "names no unit");
    }
}

TEST_F(OpeningCards, the_drivers_file_tells_how_many_units_there_are) {
    std::FILE* const file = std::fopen("/proc/rfm2g", "r");
    if (kSanitized && file == nullptr) GTEST_SKIP() << "the sanitizer's fopen comes first";
    ASSERT_NE(file, nullptr);
    std::string line(256, ' ');
    int units = -1;
    while (std::fgets(line.data(), static_cast<int>(line.size()), file) != nullptr) {
        if (std::strncmp(line.data(), "RFM2G_DEVICE_COUNT", 16) == 0) {
            EXPECT_EQ(std::sscanf(line.data(), "%*s %d", &units), 1);
        }
    }
    std::fclose(file);
    EXPECT_EQ(units, 2);
    std::FILE* const other = std::fopen("/proc/self/status", "r");
    ASSERT_NE(other, nullptr) << "others are opened as ever";
    std::fclose(other);
    EXPECT_EQ(std::fopen("/proc/rfm2g", "w"), nullptr);
}

TEST_F(OpeningCards, handles_of_threads_and_programs_are_as_many_as_one_likes) {
    constexpr unsigned kHandles = 62;
    Card first(0);
    std::vector<RFM2GHANDLE> more(kHandles);
    std::vector<std::thread> threads;
    for (RFM2GHANDLE& handle : more) {
        threads.emplace_back([&handle] {
            char path[] = "/dev/rfm2g0";
            ASSERT_EQ(RFM2gOpen(path, &handle), RFM2G_SUCCESS) << rmem_last_error();
        });
    }
    for (std::thread& thread : threads) thread.join();
    Child program([] {
        const Card another(0);
        EXPECT_EQ(RFM2gPoke32(another, 128, 9), RFM2G_SUCCESS);
    });
    EXPECT_EQ(program.wait(), 0);
    EXPECT_TRUE(has(first, 128, 9));
    for (unsigned i = 0; i < kHandles; ++i) {
        EXPECT_EQ(more[i]->Config.NodeId, 0);
        EXPECT_EQ(RFM2gPoke32(more[i], 256 + 4 * i, i + 1), RFM2G_SUCCESS);
        EXPECT_TRUE(has(first, 256 + 4 * i, i + 1)) << i;
    }
    for (RFM2GHANDLE& handle : more) EXPECT_EQ(RFM2gClose(&handle), RFM2G_SUCCESS);
}

TEST_F(OpeningCards, handles_of_one_process_wait_by_themselves) {
    Card first(0);
    RFM2GHANDLE second = nullptr;
    char path[] = "/dev/rfm2g0";
    ASSERT_EQ(RFM2gOpen(path, &second), RFM2G_SUCCESS) << rmem_last_error();
    const RFM2GHANDLE copy = second;
    const auto waiter = [](RFM2GHANDLE card) {
        return std::async(std::launch::async, [=] {
            return wait(card, RFM2GEVENT_INTR1, RFM2G_INFINITE_TIMEOUT).status;
        });
    };
    auto of_first = waiter(first), of_second = waiter(copy);
    for (const RFM2GHANDLE card : {RFM2GHANDLE{first}, copy}) {
        EXPECT_TRUE(comes([&] {
            return wait(card, RFM2GEVENT_INTR1, RFM2G_NO_WAIT).status == RFM2G_EVENT_IN_USE;
        }));
    }
    // The wait of one ends with its own handle.
    EXPECT_EQ(RFM2gClose(&second), RFM2G_SUCCESS);
    EXPECT_EQ(of_second.get(), RFM2G_WAIT_EVENT_CANCELED);
    EXPECT_EQ(RFM2gCancelWaitForEvent(first, RFM2GEVENT_INTR1), RFM2G_SUCCESS);
    EXPECT_EQ(of_first.get(), RFM2G_WAIT_EVENT_CANCELED);
}

TEST_F(OpeningCards, a_handles_descriptor_is_for_reading_the_memory) {
    Card card(0);
    const RFM2GHANDLE handle = card;
    ASSERT_GE(handle->fd, 0);
    EXPECT_EQ(RFM2gPoke32(card, 64, 0x12345678), RFM2G_SUCCESS);
    std::uint32_t words[4] = {};
    const off_t size = static_cast<off_t>(handle->Config.MemorySize);
    const ssize_t got = ::pread(handle->fd, words, sizeof words, 56);
    if (kSanitized && got == 0) GTEST_SKIP() << "the sanitizer's pread comes first";
    EXPECT_EQ(got, ssize_t{sizeof words});
    EXPECT_EQ(words[2], 0x12345678U);
    EXPECT_EQ(::pread64(handle->fd, words, sizeof words, size - 4), 4) << "up to its end";
    EXPECT_EQ(::pread(handle->fd, words, sizeof words, size), 0);
    EXPECT_EQ(::pread(handle->fd, words, sizeof words, -1), -1);
    const rmem::Descriptor file(::open("/proc/self/exe", O_RDONLY));
    char magic[4] = {};
    EXPECT_EQ(::pread(file.get(), magic, sizeof magic, 0), ssize_t{sizeof magic});
    EXPECT_EQ(std::string(magic + 1, 3), "ELF") << "others read as ever";
    // A program that closes it, and opens another file.
    ASSERT_EQ(::dup2(file.get(), handle->fd), handle->fd);
    EXPECT_EQ(::pread(handle->fd, magic, sizeof magic, 1), ssize_t{sizeof magic});
    EXPECT_EQ(std::string(magic, 3), "ELF");
    ::close(handle->fd);
}

TEST_F(OpeningCards, a_nodes_file_says_which_device_it_is) {
    const rmem::test::RingName name;
    const cards::PublishedUnit unit(3, {{"RMEM_RING", name.get()},
                                        {"RMEM_NODES", "1"},
                                        {"RMEM_SIZE", "16384"},
                                        {"RMEM_RFM2G_NAMES", "daqd-rfm=0,daqd-lsc=3"}});
    for (const int number : {0, 3}) {
        RFM2GHANDLE handle = nullptr;
        std::string path = number == 0 ? "/dev/daqd-rfm" : "/dev/daqd-lsc";
        ASSERT_EQ(RFM2gOpen(path.data(), &handle), RFM2G_SUCCESS) << rmem_last_error();
        EXPECT_EQ(handle->Config.Unit, number);
        EXPECT_EQ(RFM2gClose(&handle), RFM2G_SUCCESS);
    }
}

TEST_F(OpeningCards, a_device_with_a_name_of_the_site_is_the_unit_that_the_setting_says) {
    expect_not_opened("/dev/daqd-rfm1", RFM2G_NO_RFM2G_BOARD, "RMEM_RFM2G_NAMES");
    ::setenv("RMEM_RFM2G_NAMES", "daqd-rfm=0,daqd-rfm1=1", 1);
    for (const int unit : {0, 1}) {
        RFM2GHANDLE handle = nullptr;
        char path[] = "/dev/daqd-rfm1";
        if (unit == 0) path[sizeof path - 2] = '\0';
        ASSERT_EQ(RFM2gOpen(path, &handle), RFM2G_SUCCESS) << rmem_last_error();
        EXPECT_EQ(handle->Config.NodeId, unit);
        EXPECT_EQ(RFM2gClose(&handle), RFM2G_SUCCESS);
    }
    ::setenv("RMEM_RFM2G_NAMES", "daqd-rfm", 1);
    expect_not_opened("/dev/daqd-rfm", RFM2G_NOT_OPEN, "name=unit");
    ::unsetenv("RMEM_RFM2G_NAMES");
}

TEST_F(OpeningCards, a_window_that_no_board_has_is_refused) {
    ::setenv("RMEM_RFM2G_WINDOW", "3M", 1);
    expect_not_opened("/dev/rfm2g0", RFM2G_NOT_OPEN, "RMEM_RFM2G_WINDOW");
    ::unsetenv("RMEM_RFM2G_WINDOW");
}

TEST_F(OpeningCards, a_handle_tells_what_the_card_is) {
    const Card card(1);
    char dll[16], driver[16];
    EXPECT_EQ(RFM2gDllVersion(card, dll), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gDriverVersion(card, driver), RFM2G_SUCCESS);
    RFM2GCONFIG config = got(RFM2gGetConfig, card);
    EXPECT_EQ(got(RFM2gBoardID, card), 0x65);
    EXPECT_EQ(got(RFM2gSize, card), 16384U);
    EXPECT_EQ(got(RFM2gFirst, card), 0U);
    EXPECT_THAT(dll, HasSubstr("rmem "));
    EXPECT_STREQ(dll, driver);
    // As programs read it without a call, too.
    const RFM2GHANDLE handle = card;
    for (const RFM2GCONFIG* one : {&config, &handle->Config}) {
        EXPECT_EQ(one->NodeId, 1);
        EXPECT_EQ(one->Unit, 1);
        EXPECT_EQ(one->BoardId, 0x65);
        EXPECT_EQ(one->MemorySize, 16384U);
        EXPECT_EQ(one->PciConfig.rfm2gWindowSize, 16384U);
        EXPECT_EQ(one->PciConfig.type, 0x5565);
        EXPECT_STREQ(one->Device, "/dev/rfm2g1");
        EXPECT_STREQ(one->DriverVersion, driver);
    }
    EXPECT_EQ(RFM2gSetLed(card, RFM2G_ON), RFM2G_SUCCESS);
    EXPECT_EQ(got(RFM2gGetConfig, card).Lcsr1 & 0x80000000U, 0x80000000U);
}

TEST_F(OpeningCards, a_forked_child_has_no_card_but_may_open_one) {
    Card parent(0);
    EXPECT_EQ(RFM2gPoke32(parent, 64, 5), RFM2G_SUCCESS);
    Child child([&] {
        RFM2G_UINT32 value = 0;
        expect_refused(RFM2gPeek32(parent, 64, &value), RFM2G_NOT_OPEN, "fork()ed child");
        RFM2GHANDLE mine = parent;
        EXPECT_EQ(RFM2gClose(&mine), RFM2G_SUCCESS);
        EXPECT_EQ(mine, nullptr);
        const Card own(1);
        EXPECT_EQ(RFM2gPeek32(own, 64, &value), RFM2G_SUCCESS);
        EXPECT_EQ(value, 5U);
        EXPECT_EQ(RFM2gPoke32(own, 64, 6), RFM2G_SUCCESS);
        std::fflush(nullptr);
        ::_exit(::testing::Test::HasFailure() ? 1 : 0);  // the parent's card is left alone
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(has(parent, 64, 6));
}

// ---- Arguments

void ignore(RFM2GHANDLE, RFM2GEVENTINFO*) {}

template <class... Statuses>
std::vector<RFM2G_STATUS> all(Statuses... statuses) {
    return {statuses...};
}

/// Every call that takes a handle, with arguments that are good otherwise.
std::vector<RFM2G_STATUS> results_of_all(RFM2GHANDLE h) {
    RFM2GCONFIG config;
    RFM2G_NODE node;
    RFM2G_BOOL state;
    RFM2G_UINT8 u8;
    RFM2G_UINT16 u16;
    RFM2G_UINT32 u32;
    RFM2G_UINT64 u64;
    char text[128];
    volatile void* pointer = &u8;
    RFM2GEVENTINFO event{};
    RFM2GQINFO queue{};
    RFM2G_MEM_OFFSETTYPE offset;
    return all(
        RFM2gGetConfig(h, &config), RFM2gUserMemory(h, &pointer, 0, 1),
        RFM2gUserMemoryBytes(h, &pointer, 0, 1), RFM2gUnMapUserMemory(h, &pointer, 1),
        RFM2gUnMapUserMemoryBytes(h, &pointer, 1), RFM2gNodeID(h, &node), RFM2gBoardID(h, &u8),
        RFM2gSize(h, &u32), RFM2gFirst(h, &u32), RFM2gDeviceName(h, text), RFM2gDllVersion(h, text),
        RFM2gDriverVersion(h, text), RFM2gGetDMAThreshold(h, &u32), RFM2gSetDMAThreshold(h, 4),
        RFM2gGetDMAByteSwap(h, &state), RFM2gSetDMAByteSwap(h, RFM2G_OFF),
        RFM2gGetPIOByteSwap(h, &state), RFM2gSetPIOByteSwap(h, RFM2G_OFF), RFM2gRead(h, 0, &u32, 4),
        RFM2gWrite(h, 0, &u32, 4), RFM2gPeek8(h, 0, &u8), RFM2gPeek16(h, 0, &u16),
        RFM2gPeek32(h, 0, &u32), RFM2gPeek64(h, 0, &u64), RFM2gPoke8(h, 0, 1), RFM2gPoke16(h, 0, 1),
        RFM2gPoke32(h, 0, 1), RFM2gPoke64(h, 0, 1), RFM2gEnableEvent(h, RFM2GEVENT_INTR1),
        RFM2gDisableEvent(h, RFM2GEVENT_INTR1),
        RFM2gSendEvent(h, RFM2G_NODE_ALL, RFM2GEVENT_INTR1, 0), RFM2gWaitForEvent(h, &event),
        RFM2gEnableEventCallback(h, RFM2GEVENT_INTR1, ignore),
        RFM2gDisableEventCallback(h, RFM2GEVENT_INTR1), RFM2gClearEvent(h, RFM2GEVENT_INTR1),
        RFM2gCancelWaitForEvent(h, RFM2GEVENT_INTR1), RFM2gClearEventCount(h, RFM2GEVENT_INTR1),
        RFM2gGetEventCount(h, RFM2GEVENT_INTR1, &u32), RFM2gGetLed(h, &state),
        RFM2gSetLed(h, RFM2G_OFF), RFM2gCheckRingCont(h), RFM2gGetDarkOnDark(h, &state),
        RFM2gSetDarkOnDark(h, RFM2G_OFF), RFM2gClearOwnData(h, &state), RFM2gGetTransmit(h, &state),
        RFM2gSetTransmit(h, RFM2G_ON), RFM2gGetLoopback(h, &state), RFM2gSetLoopback(h, RFM2G_OFF),
        RFM2gGetParityEnable(h, &state), RFM2gSetParityEnable(h, RFM2G_OFF),
        RFM2gGetMemoryOffset(h, &offset), RFM2gSetMemoryOffset(h, RFM2G_MEM_OFFSET0),
        RFM2gGetSlidingWindow(h, &u32, &u32), RFM2gSetSlidingWindow(h, 0),
        RFM2gGetDebugFlags(h, &u32), RFM2gSetDebugFlags(h, 0),
        RFM2gWriteReg(h, RFM2GCTRLREGMEM, 0, 1, 0), RFM2gReadReg(h, RFM2GCTRLREGMEM, 0, 1, &u32),
        RFM2gSetReg(h, RFM2GCTRLREGMEM, 0, 1, 0), RFM2gClearReg(h, RFM2GCTRLREGMEM, 0, 1, 0),
        RFM2gMapDeviceMemory(h, RFM2GMEM, &pointer), RFM2gUnMapDeviceMemory(h, RFM2GMEM, &pointer),
        RFM2gGetEventStats(h, &queue), RFM2gFlushEventQueue(h, RFM2GEVENT_INTR1),
        RFM2gClearEventStats(h, RFM2GEVENT_INTR1));
}

TEST_F(OpeningCards, a_handle_that_is_none_is_refused_by_every_call) {
    RFM2GHANDLE null = nullptr;
    rfm2ghandle_s zeroed{};
    RFM2GHANDLE other = &zeroed;
    const auto of_null = results_of_all(null), of_other = results_of_all(other);
    EXPECT_EQ(of_null.size(), 65U);  // with RFM2gOpen, RFM2gClose and RFM2gErrorMsg all 68
    for (const RFM2G_STATUS status : of_null) EXPECT_EQ(status, RFM2G_NULL_DESCRIPTOR);
    for (const RFM2G_STATUS status : of_other) EXPECT_EQ(status, RFM2G_BAD_PARAMETER_1);
    expect_refused(RFM2gClose(&null), RFM2G_NULL_DESCRIPTOR, "null pointer");
    expect_refused(RFM2gClose(&other), RFM2G_BAD_PARAMETER_1, "none that RFM2gOpen");
    expect_refused(RFM2gClose(nullptr), RFM2G_BAD_PARAMETER_1, "argument 1");
    char path[] = "/dev/rfm2g0";
    expect_refused(RFM2gOpen(nullptr, &null), RFM2G_BAD_PARAMETER_1, "argument 1");
    expect_refused(RFM2gOpen(path, nullptr), RFM2G_BAD_PARAMETER_2, "argument 2");
}

TEST_F(OpeningCards, a_handle_that_is_closed_copied_or_no_address_is_refused_by_every_call) {
    RFM2GHANDLE card = nullptr;
    char path[] = "/dev/rfm2g0";
    ASSERT_EQ(RFM2gOpen(path, &card), RFM2G_SUCCESS);
    const RFM2GHANDLE copy = card;
    const auto within = reinterpret_cast<RFM2GHANDLE>(reinterpret_cast<std::uintptr_t>(card) + 8);
    for (const RFM2G_STATUS status : results_of_all(within))
        EXPECT_EQ(status, RFM2G_BAD_PARAMETER_1);
    EXPECT_EQ(RFM2gClose(&card), RFM2G_SUCCESS);
    EXPECT_EQ(copy->Config.Unit, 0) << "may be read";
    const Card next(0);
    for (const RFM2GHANDLE none : {copy, reinterpret_cast<RFM2GHANDLE>(0x1234),
                                   reinterpret_cast<RFM2GHANDLE>(UINTPTR_MAX - 7)}) {
        for (const RFM2G_STATUS status : results_of_all(none))
            EXPECT_EQ(status, RFM2G_BAD_PARAMETER_1);
        RFM2GHANDLE closed = none;
        expect_refused(RFM2gClose(&closed), RFM2G_BAD_PARAMETER_1, "none that RFM2gOpen");
    }
}

TEST_F(OpeningCards, a_null_pointer_is_refused_by_the_number_of_the_argument) {
    const Card h(0);
    for (const RFM2G_STATUS status :
         all(RFM2gGetConfig(h, nullptr), RFM2gUserMemory(h, nullptr, 0, 1),
             RFM2gUserMemoryBytes(h, nullptr, 0, 1), RFM2gUnMapUserMemory(h, nullptr, 1),
             RFM2gUnMapUserMemoryBytes(h, nullptr, 1), RFM2gNodeID(h, nullptr),
             RFM2gBoardID(h, nullptr), RFM2gSize(h, nullptr), RFM2gFirst(h, nullptr),
             RFM2gDeviceName(h, nullptr), RFM2gDllVersion(h, nullptr),
             RFM2gDriverVersion(h, nullptr), RFM2gGetDMAThreshold(h, nullptr),
             RFM2gGetDMAByteSwap(h, nullptr), RFM2gGetPIOByteSwap(h, nullptr),
             RFM2gWaitForEvent(h, nullptr), RFM2gGetLed(h, nullptr), RFM2gGetDarkOnDark(h, nullptr),
             RFM2gClearOwnData(h, nullptr), RFM2gGetTransmit(h, nullptr),
             RFM2gGetLoopback(h, nullptr), RFM2gGetParityEnable(h, nullptr),
             RFM2gGetMemoryOffset(h, nullptr), RFM2gGetSlidingWindow(h, nullptr, nullptr),
             RFM2gGetDebugFlags(h, nullptr), RFM2gGetEventStats(h, nullptr))) {
        EXPECT_EQ(status, RFM2G_BAD_PARAMETER_2);
    }
    for (const RFM2G_STATUS status :
         {RFM2gRead(h, 0, nullptr, 4), RFM2gWrite(h, 0, nullptr, 4), RFM2gPeek8(h, 0, nullptr),
          RFM2gPeek16(h, 0, nullptr), RFM2gPeek32(h, 0, nullptr), RFM2gPeek64(h, 0, nullptr),
          RFM2gEnableEventCallback(h, RFM2GEVENT_INTR1, nullptr),
          RFM2gGetEventCount(h, RFM2GEVENT_INTR1, nullptr),
          RFM2gMapDeviceMemory(h, RFM2GMEM, nullptr),
          RFM2gUnMapDeviceMemory(h, RFM2GMEM, nullptr)}) {
        EXPECT_EQ(status, RFM2G_BAD_PARAMETER_3);
    }
    EXPECT_EQ(RFM2gReadReg(h, RFM2GCTRLREGMEM, 0, 1, nullptr), RFM2G_BAD_PARAMETER_5);
    EXPECT_THAT(rmem_last_error(), HasSubstr("argument 5"));
}

TEST(StatusCodes, each_has_a_meaning_of_its_own) {
    std::set<std::string> meanings;
    for (int code = 0; code <= RFM2G_MAX_ERROR_CODE; ++code)
        meanings.insert(RFM2gErrorMsg(static_cast<RFM2G_STATUS>(code)));
    EXPECT_EQ(meanings.size(), 43U);
    EXPECT_EQ(rfm2g_nerr, 43);
    EXPECT_STREQ(RFM2gErrorMsg(static_cast<RFM2G_STATUS>(RFM2G_MAX_ERROR_CODE + 1)),
                 rfm2g_errlist[RFM2G_MAX_ERROR_CODE]);
    EXPECT_EQ(RFM2G_NODE_ID_SELF, 41);
}

}  // namespace
}  // namespace rmem::test
