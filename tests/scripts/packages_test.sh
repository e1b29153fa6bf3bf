#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# need_packages on machines that are not this one: dpkg-query, apt-get and sudo are replaced by
# stubs, first in the PATH of a shell that sources the helper.
set -euo pipefail
cd "$RMEM_SOURCE_DIR"

fail() {
    printf 'failed: %s\n%s\n' "$1" "$output"
    exit 1
}

# Runs need_packages with `installed` as what dpkg-query says of every package; sets output and
# code.
need() {
    local installed=$1 bin
    shift
    bin=$(mktemp -d)
    printf '#!/bin/sh\necho "%s"\n' "$installed" >"$bin/dpkg-query"
    # shellcheck disable=SC2016  # the stub expands it
    printf '#!/bin/sh\necho apt-get "$@"\n' >"$bin/apt-get"
    printf '#!/bin/sh\nexit 1\n' >"$bin/sudo"
    chmod +x "$bin"/*
    code=0
    output=$(PATH=$bin:$PATH bash -c 'set -euo pipefail
        source scripts/lib/packages.sh
        need_packages "$@"' need "$@" 2>&1) || code=$?
    rm -r "$bin"
}

need "install ok installed" build check
[[ $code == 0 && -z $output ]] || fail "a machine that has everything is left alone"

need "unknown ok not-installed" build
[[ $output == *"apt-get install -y --no-install-recommends g++ cmake"* ]] ||
    fail "what is missing is installed, or the command that does is printed"
[[ $output != *shellcheck* ]] || fail "only the groups asked for are installed"
if ((EUID == 0)); then
    [[ $code == 0 ]] || fail "root goes on"
else
    [[ $code == 2 ]] || fail "without the right to install, it ends with 2"
fi
