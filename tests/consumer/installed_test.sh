#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# Installs the build, moves the installed tree (packagers do) and builds a C and a C++ user of it,
# and a program for a card, once with CMake and once with pkg-config; each installed header alone;
# and by pkg-config alone a C program on all the ports, which two ranks of one ring run.
set -euo pipefail

here=$RMEM_SOURCE_DIR/tests/consumer
if [[ ! -f $RMEM_SOURCE_DIR/billboard/bbp.h ]]; then
    echo "skipped: billboard/bbp.h does not exist"
    exit 77
fi
mapfile -t cards < <(cd "$RMEM_SOURCE_DIR/cards" && dirname -- */exports.map)

work=$(mktemp -d)
node=
trap 'if [[ $node ]]; then kill "$node" && wait "$node" || true; fi; rm -rf "$work"' EXIT
cmake --install "$RMEM_BUILD_DIR" --prefix "$work/staged" >"$work/install.log" || {
    cat "$work/install.log"
    echo "the install failed: build everything in $RMEM_BUILD_DIR first"
    exit 1
}
prefix=$work/moved
mv "$work/staged" "$prefix"
libdir=$(dirname "$(find "$prefix" -name librmem.so)")
export LD_LIBRARY_PATH=$libdir

echo "--- with CMake"
cmake -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="${CC:-cc}" -DCMAKE_CXX_COMPILER="${CXX:-c++}"
cmake --build "$work/build"
"$work/build/c_user"
"$work/build/cpp_user"
export RMEM_RING=consumer-$$ XDG_RUNTIME_DIR=$work # where no unit is another's
"$work/build/stores_user"
for card in "${cards[@]}"; do "$work/build/${card}_user"; done

echo "--- with rmem-cc"
RMEM_CC=${CC:-cc} "$prefix/bin/rmem-cc" -std=c11 -O2 -o "$work/stores_user" "$here/stores_user.c"
"$work/stores_user" | grep "100 stores were captured"

echo "--- with pkg-config"
export PKG_CONFIG_PATH=$libdir/pkgconfig
read -ra c_flags < <(pkg-config --cflags --libs billboard rmem)
read -ra cpp_flags < <(pkg-config --cflags --libs billboard rmem)
"${CC:-cc}" -std=c11 -o "$work/c_user" "$here/c_user.c" "${c_flags[@]}"
"${CXX:-c++}" -std=c++20 -o "$work/cpp_user" "$here/cpp_user.cpp" "${cpp_flags[@]}"
for card in "${cards[@]}"; do
    read -ra card_flags < <(pkg-config --cflags --libs "$card")
    "${CC:-cc}" -std=c11 -o "$work/${card}_user" "$here/${card}_user.c" "${card_flags[@]}"
    "$work/${card}_user"
done
unset RMEM_RING
"$work/c_user" | tee "$work/said"
[[ $(head -1 "$work/said") == "version $(pkg-config --modversion billboard)" ]]
"$work/cpp_user"

echo "--- by the names of a map"
for header in rig.h rig.hpp rig.py; do
    "$prefix/bin/rmem" map header "$here/rig.toml" -o "$work/$header"
done
read -ra map_flags < <(pkg-config --cflags --libs rmem-maps)
strict=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I"$work")
"${CC:-cc}" -std=c11 "${strict[@]}" -o "$work/maps_c" "$here/maps_user.c" "${map_flags[@]}"
"${CXX:-c++}" -std=c++20 "${strict[@]}" -o "$work/maps_cpp" "$here/maps_user.cpp" "${map_flags[@]}"
python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import rig; rig.VARIABLES["title"]' "$work"
for user in maps_c maps_cpp; do
    "$prefix/bin/rmem" run -n 1 --map "$here/rig.toml" -- "$work/$user"
    RMEM_MAP=$here/rig.toml "$work/$user"
    if "$work/$user" 2>"$work/said"; then
        echo "$user runs without a map"
        exit 1
    fi
    grep -q "has no map" "$work/said"
done

echo "--- by the names of the vendors' own files"
"${CC:-cc}" -std=c11 -I"$prefix/include/rfm2g" -o "$work/by_name" "$here/rfm2g_user.c" \
    "$libdir/librfm2g.a"
RMEM_RING=consumer-$$ "$work/by_name"
grep -q 'RFM2G_PRODUCT_VERSION "R' "$prefix/include/rfm2g/rfm2g_version.h"
for header in rfm2g_windows.h rfm2gdll_stdc.h; do [[ -e $prefix/include/rfm2g/$header ]]; done
sed 's,<scrplus.h>,<scramnet/scrplus.h>,' "$here/scramnet_plus_user.c" >"$work/plus_user.c"
"${CC:-cc}" -std=c11 -I"$prefix/include" -o "$work/by_name" "$work/plus_user.c" \
    -L"$libdir/scramnet" -lplus -lhw -lhwd
RMEM_RING=consumer-$$ "$work/by_name"
# Tools that bring the types themselves, which are those of <stdint.h>: before, or behind.
mkdir "$work/tool"
cat >"$work/tool/systypes.h" <<'END'
#ifndef __SYS_TYPES_H__
#define __SYS_TYPES_H__
#include <stdint.h>
typedef int64_t int64;
typedef uint64_t uint64;
typedef int32_t int32;
typedef uint32_t uint32;
typedef int16_t int16;
typedef uint16_t uint16;
typedef int8_t int8;
typedef uint8_t uint8;
typedef unsigned long uintpsize;
#endif
END
for first in "$work/tool/systypes.h" "$prefix/include/scgt/scgtapi.h"; do
    for language in c c++; do
        "${CXX:-c++}" -x "$language" -fsyntax-only -I"$prefix/include/scgt" -include "$first" \
            -include "$prefix/include/scgt/scgtapi.h" -include "$work/tool/systypes.h" /dev/null
    done
done

echo "--- each header alone"
# What it reads is the install's, the compiler's or the C library's.
others='/(boost|fmt|nlohmann|rdma|toml\+\+)/|/(sodium|zlib)\.h'
alone() { # <header> <language> <compiler> <option>...
    printf '#include <%s>\nextern int alone;\n' "$1" >"$work/alone.$2"
    "${@:3}" -Wall -Wextra -Wpedantic -Werror -I "$prefix/include" -c -o "$work/alone.o" \
        -MD -MF "$work/alone.d" "$work/alone.$2" || return 1
    ! grep -oE "[^ ]*($others)[^ ]*" "$work/alone.d"
}
while read -r header; do
    if [[ $header == *.h ]]; then
        alone "$header" c "${CC:-cc}" -std=c11 || failed="${failed:-} $header (C)"
    fi
    alone "$header" cpp "${CXX:-c++}" -std=c++20 || failed="${failed:-} $header"
done < <(cd "$prefix/include" && find . -name '*.h' -o -name '*.hpp' | sed 's,^\./,,' | sort)
[[ ! ${failed:-} ]] || {
    echo "do not compile alone, or read what is another package's:$failed"
    exit 1
}

echo "--- all ports in one program"
read -ra port_flags < <(pkg-config --cflags --libs fm gamma dp munet billboard)
"${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -o "$work/ports_user" \
    "$here/ports_user.c" "${port_flags[@]}"
for user in c_user cpp_user "${cards[@]/%/_user}" ports_user; do
    if nm -D "$work/$user" | grep _PRIVATE_; then
        echo "$user is linked with names that are not for users"
        exit 1
    fi
done
export RMEM_MUNET=$work/munet.sock
"$prefix/bin/rmem" node --munet --ring "ports-$$" --node 0 --munet-socket "$RMEM_MUNET" \
    >"$work/node.log" 2>&1 &
node=$!
for ((i = 0; i < 200; ++i)); do
    [[ -S $RMEM_MUNET ]] && break
    sleep 0.05
done
timeout -k 5 90 "$prefix/bin/rmem" run -n 2 --ring "ports-$$-run" --no-label -- \
    "$work/ports_user" | tee "$work/ports.log" || {
    cat "$work/node.log"
    exit 1
}
[[ $(grep -c "^six systems$" "$work/ports.log") -eq 2 ]]
