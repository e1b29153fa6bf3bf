// SPDX-License-Identifier: Apache-2.0
#include "ports/fm/runtime.hpp"

#include <fmt/format.h>

namespace ports::fm {

Runtime::Runtime(const Parameters& parameters, const Handlers& handlers)
    : process(billboard::ProcessEndpoint::open()),
      network(*process, {parameters.is_quiet, static_cast<std::uint16_t>(parameters.fm1.slots)}),
      fm1(network, parameters.fm1),
      fm2(network, handlers) {
    network.set_layers(fm1, fm2);
    const auto held = process->hold();
    network.greet_all();
}

void Runtime::leave() {
    const auto held = process->hold();
    if (const unsigned waiting = fm1.waiting(); waiting != 0)
        network.say(fmt::format("{} messages were not extracted before FM_finalize, and are lost",
                                waiting));
    const Deadline deadline = process->endpoint().deadline_in(kSettleNs);
    if (const unsigned kept = fm2.settle(deadline); kept != 0)
        network.say(
            fmt::format("FM_finalize gave up on {} packets for which there was no room", kept));
    if (const unsigned undecided = fm1.settle(deadline); undecided != 0) {
        network.say(fmt::format(
            "FM_finalize gave up on {} frames that their receivers did not accept in {} s",
            undecided, kSettleNs / 1'000'000'000));
    }
}

}  // namespace ports::fm
