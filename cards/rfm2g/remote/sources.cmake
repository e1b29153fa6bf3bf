# SPDX-License-Identifier: Apache-2.0
# The library whose node `rmem serve` keeps, on any system; from the root of the tree. What it has
# of rmem itself is what needs nothing of a system's.
set(rfm2g_remote_sources
    cards/rfm2g/board_calls.cpp
    cards/rfm2g/calls.cpp
    cards/rfm2g/device.cpp
    cards/rfm2g/event_calls.cpp
    cards/rfm2g/events.cpp
    cards/rfm2g/messages.cpp
    cards/rfm2g/registers.cpp
    cards/rfm2g/remote/host.cpp
    remote/client.cpp
    remote/protocol.cpp
    remote/rmem_calls.cpp
    remote/socket.cpp
    remote/view.cpp
    rmem/base/check.cpp
    rmem/base/environment_variable.cpp
    rmem/base/failures.cpp
    rmem/base/frames.cpp
    rmem/base/helper_thread.cpp
    rmem/base/process_state.cpp
    rmem/base/program_host.cpp
    rmem/base/quantity.cpp
    rmem/base/suggestion.cpp
    rmem/error.cpp)
