#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# Builds only the memory and the billboard, as static libraries, with everything else switched off;
# installs them; builds a C and a C++ user of them, which run without a shared library of ours; and
# asks for a component that was left out. A build without the packages of MPI says so, at
# configuration, at installation and in the launchers.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

here=$RMEM_SOURCE_DIR/tests/consumer

cmake -S "$RMEM_SOURCE_DIR" -B "$work/rmem" -G Ninja \
    -DBUILD_SHARED_LIBS=OFF -DCMAKE_INSTALL_PREFIX="$work/installed" \
    -DRMEM_BUILD_PORTS=OFF -DRMEM_BUILD_MPI=OFF -DRMEM_BUILD_SIMULATOR=OFF -DRMEM_BUILD_TOOLS=OFF \
    -DRMEM_BUILD_BENCH=OFF -DRMEM_BUILD_EXAMPLES=OFF \
    -DCMAKE_CXX_FLAGS_RELEASE=-O0 \
    >"$work/log" 2>&1 || fail "$(cat "$work/log")"
grep -q '^CMAKE_BUILD_TYPE:STRING=Release$' "$work/rmem/CMakeCache.txt" ||
    fail "no build type was chosen"
cmake --build "$work/rmem" -j 2 >>"$work/log" 2>&1 || fail "$(tail -40 "$work/log")"
cmake --install "$work/rmem" >>"$work/log"
left_out=$(find "$work/installed" \( -name '*.so*' -o -name rmem -type f -o -name 'rmem-*' \
    -o -name 'fm.*' -o -name 'FM_*' -o -name 'mpirun*' \) ! -name 'rmem-c[c+]*' \
    ! -name 'rmem-maps.pc' ! -name 'rmem-errors.7' ! -path '*/doc/rmem/docs/*' -print)
[[ -z $left_out ]] || fail "installed, although it was switched off: $left_out"

build_users() {
    rm -rf "$work/users"
    cmake -S "$here" -B "$work/users" -DCMAKE_PREFIX_PATH="$work/installed" "$@" \
        >"$work/users.log" 2>&1 &&
        cmake --build "$work/users" >>"$work/users.log" 2>&1
}
build_users || fail "$(cat "$work/users.log")"
for user in c_user cpp_user; do
    ldd "$work/users/$user" >"$work/libraries"
    if grep -E 'librmem|libbillboard' "$work/libraries"; then
        fail "$user is linked with shared libraries"
    fi
    "$work/users/$user"
done

if build_users -DCONSUMER_COMPONENT=fm; then fail "a component that was left out was found"; fi
# CMake breaks the sentence's lines.
said=$(tr -s '\n ' ' ' <"$work/users.log")
[[ $said == *"left out of this build: fm; installed: rmem maps billboard"* ]] || fail "$said"

# All that pkg-config finds here, but for what MPI takes.
mkdir "$work/found"
pkg-config --variable pc_path pkg-config | tr : '\n' | while read -r folder; do
    [[ ! -d $folder ]] || find "$folder" -name '*.pc' ! -name 'mpich*' ! -name 'ompi*' \
        ! -name 'libfabric*' -exec ln -sf -t "$work/found" {} +
done
PKG_CONFIG_LIBDIR=$work/found cmake -S "$RMEM_SOURCE_DIR" -B "$work/parts" -G Ninja \
    -DCMAKE_INSTALL_PREFIX="$work/bare" -DRMEM_BUILD_TESTS=OFF -DRMEM_BUILD_BENCH=OFF \
    -DRMEM_BUILD_FABRIC=OFF \
    >"$work/configured" 2>&1 || fail "$(cat "$work/configured")"
cmake -P "$work/parts/mpi_channel/cmake_install.cmake" >"$work/installing" 2>&1 ||
    fail "$(cat "$work/installing")"
while IFS=: read -r part sentence; do
    for step in configured installing; do
        grep -qF "$part:$sentence" "$work/$step" ||
            fail "nothing is said of $part: $(cat "$work/$step")"
    done
done <"$RMEM_SOURCE_DIR/mpi_channel/parts.txt"
for launcher in mpirun-bbp-openmpi mpirun-bbp-mpich; do
    if "$work/bare/bin/$launcher" -n 1 true >"$work/said" 2>&1; then
        fail "$launcher runs without"
    fi
    grep -q 'there is no libbbp-fi.so: .*install libfabric-dev' "$work/said" ||
        fail "$launcher says: $(cat "$work/said")"
done
