// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/stores.hpp"

#include "rmem/ring/segment.hpp"
#include "rmem/stores/debugger.hpp"
#include "rmem/stores/instrumented.hpp"
#include "rmem/stores/scanned.hpp"
#include "rmem/stores/trapped_view.hpp"

namespace rmem::stores {

namespace {

class ExactStores final : public Stores {
public:
    ExactStores(const Ring& ring, unsigned node, StoreTaker& taker)
        : mapping_(ring.segment().map_again(ring.bank(node), ring.config().user_bytes,
                                            Mapping::Access::load)),
          view_({memory(), ring.config().user_bytes}, ring.bank(node), taker) {}

    std::byte* memory() const noexcept override { return mapping_.data(); }

private:
    const Mapping mapping_;
    TrappedView view_;
};

}  // namespace

std::unique_ptr<Stores> capture(StoresMode mode, const Ring& ring, unsigned node,
                                StoreTaker& taker) {
    if (mode == StoresMode::exact) return std::make_unique<ExactStores>(ring, node, taker);
    if (mode == StoresMode::instrumented)
        return std::make_unique<InstrumentedStores>(ring, node, taker);
    // A debugger that steps one thread lets no other one answer for a page.
    const auto watching =
        is_debugged() ? std::optional(PageWatchKind::mprotect) : std::optional<PageWatchKind>();
    return std::make_unique<ScannedStores>(ring, node, taker, watching);
}

}  // namespace rmem::stores
