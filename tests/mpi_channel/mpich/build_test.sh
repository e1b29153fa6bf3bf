#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# mpi_channel/mpich/build: what it says when it cannot build, that it builds once, and that what it
# has built takes the place of Debian's library for any program. (scripts/check has called it
# before.)
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

build=$RMEM_SOURCE_DIR/mpi_channel/mpich/build
mpich=${RMEM_MPICH:-$RMEM_SOURCE_DIR/build/mpich}
# ends_with <code> <words> <argument>...
ends_with() {
    local code=$1 words=$2 status=0
    shift 2
    "$build" "$@" >"$output" 2>&1 || status=$?
    ((status == code)) || fail "exit code $status of build $*, not $code"
    grep -qF -- "$words" "$output" || fail "build $* does not say: $words"
}

ends_with 0 'examples:' --help
ends_with 2 "there is no option '--frefix'" --frefix "$work"
ends_with 2 '--source needs a value' --source
ends_with 2 'one folder is enough' "$work/one" "$work/two"

if ! dpkg-query -W libmpich-dev libfabric-dev dpkg-dev >/dev/null 2>&1; then
    ends_with 77 'install' "$work/mpich"
    skip "the packages to build MPICH are missing, and build says so"
fi

ends_with 77 "there is no '$work/none.dsc'" --source "$work/none.dsc" "$work/mpich"
[[ ! -e $work/mpich/state ]] || fail "what could not be built looks as if it were there"
# A system without sources: nothing is asked of any network.
mkdir "$work/no-sources"
printf 'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "%s";\n' "$work/no-sources" \
    >"$work/apt.conf"
APT_CONFIG=$work/apt.conf ends_with 77 "cannot be had from the system's apt sources" "$work/mpich"
# Damaged: whatever it is, it is not built.
echo 'no source package' >"$work/damaged.dsc"
ends_with 1 'all of its output is in' --source "$work/damaged.dsc" "$work/mpich"

[[ -e $mpich/libmpich.so.12 ]] || skip "MPICH was not built; the rest has passed"
before=$(stat -c %y "$mpich/libmpich.so.12")
ends_with 0 'is there' --prefix "$work/installed" "$mpich"
[[ $(stat -c %y "$mpich/libmpich.so.12") == "$before" ]] || fail "it is built again"
cmp -s "$mpich/libmpich.so.12" "$work/installed/libmpich.so.12" ||
    fail "--prefix holds another library"

# Each function that a program may have been linked to, and its soname.
symbols() { nm -D --defined-only "$1" | awk '{ print $3 }' | grep -E '^P?MPI' | sort; }
debian=$(ldconfig -p | awk '$1 == "libmpich.so.12" && !found++ { print $NF }')
comm -13 <(symbols "$mpich/libmpich.so.12") <(symbols "$debian") >"$output"
[[ ! -s $work/output ]] || fail "Debian's $debian has more functions"
readelf -d "$mpich/libmpich.so.12" >"$output"
grep -q 'Library soname: \[libmpich.so.12\]' "$output" || fail "the soname is another one"
