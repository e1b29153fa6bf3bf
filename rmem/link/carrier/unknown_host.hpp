// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A name in RMEM_GROUP that this host does not know: not now. A container's becomes known when it
/// starts.

#include "rmem/error.hpp"

namespace rmem::udp {

class UnknownHost : public Error {
public:
    using Error::Error;
};

}  // namespace rmem::udp
