// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/process_state.hpp"

namespace rmem::sim {

namespace {

std::vector<MakeProcessState>& makers() {
    static std::vector<MakeProcessState> all;  // in a function: libraries register before main
    return all;
}

}  // namespace

bool register_process_state(MakeProcessState make) {
    makers().push_back(make);
    return true;
}

std::vector<std::unique_ptr<ProcessState>> make_process_states() {
    std::vector<std::unique_ptr<ProcessState>> states;
    for (const MakeProcessState make : makers()) states.push_back(make());
    return states;
}

}  // namespace rmem::sim
