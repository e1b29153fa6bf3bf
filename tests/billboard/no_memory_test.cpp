// SPDX-License-Identifier: Apache-2.0
// A call that gets no private memory says so, and the message that it was about stays.

#include "tests/support/conformance.hpp"

#include <cstdlib>
#include <new>
#include <utility>

namespace {

thread_local bool no_memory = false;  // the next `new` of this thread gives none

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    void* memory = std::exchange(no_memory, false) ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace rmem::test {
namespace {

// Not on `ring`: there the engine may be the first to ask, and ends the process
// (rmem/link/ring/engine.hpp).
class NoMemory : public Conformance {};
INSTANTIATE_TEST_SUITE_P(On, NoMemory,
                         ::testing::Values(Variant{"direct_inline", "direct", "none", "inline", 1},
                                           Variant{"direct_paper", "direct", "none", "paper", 1}),
                         variant_name);

TEST_P(NoMemory, is_a_code_and_loses_no_message) {
    run(2, [](Rank& me) {
        const std::size_t size = 3 * kPartition;  // in parts, which a probe gathers
        if (me.rank == 0) return send(1, size, 1);
        std::size_t found = 0;
        int code = BBP_EAGAIN;
        const auto probe = [&] {
            no_memory = true;
            code = bbp_probe(0, &found);
            no_memory = false;
            return code != BBP_EAGAIN;
        };
        await(probe, "the message");
        check_code(code, BBP_ENOMEM);
        receive(0, size, 1);
    });
}

}  // namespace
}  // namespace rmem::test
