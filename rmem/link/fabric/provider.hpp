// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Which of libfabric's providers carries a ring, and why others do not.
///
/// One is taken that gives endpoints of type RDM with messages, the order FI_ORDER_SAS in both
/// directions, resource management, and several receives in one buffer. What a provider says it
/// promises counts; nothing is tried out.
///
/// Thread safety: any thread. Errors: `Error(no_fabric)`: no provider will do; the sentence says
/// which was asked for, what it lacks, and which are here.
/// Source: fi_getinfo(3), fi_endpoint(3).

#include "rmem/link/fabric/library.hpp"
#include "rmem/link/fabric/settings.hpp"

#include <rdma/fabric.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace rmem::fabric {

struct FreeInfo {
    void operator()(fi_info* info) const noexcept { library().freeinfo(info); }
};
/// The first of a list that libfabric made.
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// What an endpoint of that kind lacks to carry a ring, for a sentence ("no order between …");
/// empty: nothing.
RMEM_API std::string lack_of(const fi_info& info);

/// libfabric's ways over TCP, the preferred one first. Up to libfabric 1.17 "tcp" has a layer
/// (ofi_rxm) in between, and "net" none; later there is no "net", and "tcp" is what that was.
inline constexpr std::array kOverTcp = {"net", "tcp"};
/// Whether that is one of them, with a layer or without.
RMEM_API bool is_over_tcp(std::string_view provider) noexcept;

/// An endpoint for that node, alone in the list: of the provider that RMEM_PROVIDER names, else of
/// the first that libfabric has; where that is a way over TCP, of the preferred one.
RMEM_API Info choose_provider(const Settings& settings, unsigned node);

}  // namespace rmem::fabric
