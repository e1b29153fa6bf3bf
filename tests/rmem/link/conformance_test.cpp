// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan apart
#include "tests/support/link_conformance.hpp"

namespace rmem::test {
namespace {

INSTANTIATE_TEST_SUITE_P(
    EachLink, LinkConformance,
    conformance_on({{LinkKind::direct, {"none"}},
                    {LinkKind::ring, {"none", "scramnet-burst", "scramnet-burst-plus"}},
                    {LinkKind::udp, {"none", "scramnet-burst", "scramnet-burst-plus"}},
                    {LinkKind::fabric, {"none", "scramnet-burst"}},
                    {LinkKind::sim,
                     {"none", "scramnet-burst", "scramnet-burst-plus", "platinum", "gt200"}}}),
    conformance_case_name);

}  // namespace
}  // namespace rmem::test
