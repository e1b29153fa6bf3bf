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

#include <memory>
#include <string>

namespace rmem::fabric {

struct FreeInfo {
    void operator()(fi_info* info) const noexcept { library().freeinfo(info); }
};
/// The first of a list that libfabric made.
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// What an endpoint of that kind lacks to carry a ring, for a sentence ("no order between …");
/// empty: nothing.
RMEM_API std::string lack_of(const fi_info& info);

/// An endpoint for that node, alone in the list.
RMEM_API Info choose_provider(const Settings& settings, unsigned node);

}  // namespace rmem::fabric
