// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan apart
#include "tests/support/link_conformance.hpp"

namespace rmem::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Direct, LinkConformance, conformance_cases(LinkKind::direct, {"none"}),
                         conformance_case_name);
INSTANTIATE_TEST_SUITE_P(Ring, LinkConformance,
                         conformance_cases(LinkKind::ring,
                                           {"none", "scramnet-burst", "scramnet-burst-plus"}),
                         conformance_case_name);
INSTANTIATE_TEST_SUITE_P(Udp, LinkConformance,
                         conformance_cases(LinkKind::udp,
                                           {"none", "scramnet-burst", "scramnet-burst-plus"}),
                         conformance_case_name);
INSTANTIATE_TEST_SUITE_P(Fabric, LinkConformance,
                         conformance_cases(LinkKind::fabric, {"none", "scramnet-burst"}),
                         conformance_case_name);
INSTANTIATE_TEST_SUITE_P(Sim, LinkConformance,
                         conformance_cases(LinkKind::sim,
                                           {"none", "scramnet-burst", "scramnet-burst-plus",
                                            "platinum", "gt200"}),
                         conformance_case_name);

}  // namespace
}  // namespace rmem::test
