# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests in a lab (scripts/lab): source it first. It goes to the root of the tree.
#
#   name                        of the test's own lab, which is gone when the test ends
#   output                      a file for what commands say
#   need_namespaces <tool>...   skips, with the reason, where no lab can be made, or one of these tools is missing
#   fail <sentence>             shows what is in `output`, and ends the test
set -euo pipefail
cd "$RMEM_SOURCE_DIR"

output=$(mktemp)
name=test_$$
trap 'rm -f "$output"; ((EUID != 0)) || scripts/lab down --name "$name" || true' EXIT

skip() {
    echo "skipped: $1"
    exit 77
}

need_namespaces() {
    local tool
    ((EUID == 0)) || skip "only root may make network namespaces"
    for tool in "$@"; do
        command -v "$tool" >/dev/null || skip "there is no '$tool'"
    done
    ip netns add "rmem-$name-net" 2>"$output" || skip "this host makes no network namespaces: $(cat "$output")"
    ip netns delete "rmem-$name-net"
}

fail() {
    cat "$output"
    echo "failed: $1"
    exit 1
}
