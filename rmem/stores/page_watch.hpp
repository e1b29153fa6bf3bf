// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Tells of the first store into each page of a mapping, before it is made.
///
/// Pages are *protected* at first. A store into one waits until wait() has told of the page, which
/// is unprotected from then on, until protect() is called for it.
///   userfaultfd  the kernel asks this object. Also for stores that the kernel makes itself
///                (read(2) into the page), where the system lets this process have that (root, or
///                vm.unprivileged_userfaultfd=1)
///   mprotect     elsewhere, as in most containers: the storing thread itself unprotects the page,
///                in the handler of a signal. To read(2) a protected page is EFAULT
/// Invariants: a page that was told of is unprotected.
/// Fork: in a child the mapping is for loads alone; a store ends the child.
/// Thread safety: wake() from any thread, the rest from one.
/// Progress: a store into a protected page waits for the thread that calls wait().
/// Errors: Error(system).

#include "rmem/base/limits.hpp"
#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace rmem::stores {

class PageWatch {
public:
    /// Called with a page's number; true: with the pages behind it, up to that number.
    using OnStore = std::function<std::size_t(std::size_t page)>;

    virtual ~PageWatch() = default;
    PageWatch(const PageWatch&) = delete;
    PageWatch& operator=(const PageWatch&) = delete;

    /// False: not now, since a store that was told of may not be made yet.
    [[nodiscard]] virtual bool protect(std::size_t page) noexcept = 0;
    /// Waits for stores, `ns` at most. For each page it calls `on_store`, which says how many pages
    /// from this one on need no protection any more (one at least), and then the store is made.
    virtual void wait(std::int64_t ns, const OnStore& on_store) = 0;
    /// Ends a wait(), now or the next.
    virtual void wake() noexcept = 0;

protected:
    PageWatch() = default;
};

enum class PageWatchKind { userfaultfd, mprotect };

/// Of `view`, whole pages, which it protects; it outlives the watch. Of that kind, or else the
/// first that the system has for this process.
[[nodiscard]] RMEM_API std::unique_ptr<PageWatch> watch_pages(
    std::span<std::byte> view, std::optional<PageWatchKind> kind = std::nullopt);

}  // namespace rmem::stores
