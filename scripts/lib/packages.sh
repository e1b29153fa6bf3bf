# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts beside this folder.

step() { printf '\n==> %s\n' "$*"; }

# need_packages <group>...: installs what is missing of these groups of scripts/packages.txt, or
# says how to and ends with exit code 2.
need_packages() {
    local list group package missing=()
    list=$(dirname "${BASH_SOURCE[0]}")/../packages.txt
    if ! command -v dpkg-query >/dev/null; then
        echo "This is no Debian: install what scripts/packages.txt lists yourself."
        return
    fi
    while read -r group package _; do
        [[ " $* " == *" $group "* ]] || continue
        [[ $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) == *" installed" ]] ||
            missing+=("$package")
    done <"$list"
    ((${#missing[@]})) || return 0

    local install=(apt-get install -y --no-install-recommends "${missing[@]}")
    local root=(env DEBIAN_FRONTEND=noninteractive)
    if ((EUID != 0)); then
        if ! sudo -n true 2>/dev/null; then
            echo "Packages are missing. Install them, then run this again:"
            echo "    sudo ${install[*]}"
            exit 2
        fi
        root=(sudo -n "${root[@]}")
    fi
    step "Installing ${missing[*]}"
    "${root[@]}" apt-get update -q </dev/null
    "${root[@]}" "${install[@]}" </dev/null
}
