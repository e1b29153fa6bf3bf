# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced, from the root of the tree, by the scripts beside this folder that build.

CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
export CMAKE_BUILD_PARALLEL_LEVEL

# Where there is ccache: paths count from the root of the tree, so that a clone of it finds what was
# compiled here; a source that is new is not preprocessed first, only to look for it; and what a
# precompiled header defines is in it.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
export CCACHE_SLOPPINESS=pch_defines,time_macros

# build_with_progress <argument of cmake --build>...: the same, and says how far it is.
build_with_progress() {
    if command -v python3 >/dev/null; then
        scripts/lib/progress cmake --build "$@"
    else
        cmake --build "$@"
    fi
}
