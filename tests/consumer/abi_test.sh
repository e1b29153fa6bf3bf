#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
#
# What a header declares can be linked with, and what programs are compiled and linked against is
# what the last release had: the functions, types and numbers of the C headers, as abidiff compares
# them (abi/*.abi), and the names that libraries export to users (abi/*.names; those of C++ have
# their arguments' types in them). What is only new is no difference. The headers are compiled into
# small libraries, each with a pointer to all that a header declares, so the debug information of
# the build does not matter.
#
#     tests/consumer/abi_test.sh --renew     # takes what build/release has as the reference
#
# Each release makes the reference; nothing is released yet, so there is none. A difference that is
# meant is said in CHANGELOG.md, with what users have to do, and the reference is renewed with it.
# Before 1.0 a release that has one is a new minor version, from 1.0 on a new major one.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=${RMEM_SOURCE_DIR:-$(cd "$here/../.." && pwd)}
build=${RMEM_BUILD_DIR:-$tree/build/release}
for tool in abidw abidiff; do
    command -v $tool >/dev/null || {
        echo "skipped: no $tool (package abigail-tools)"
        exit 77
    }
done
if [[ $(uname -m) != x86_64 ]]; then
    echo "skipped: the reference is of x86_64"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
    echo "FAILED: $*"
    failed=1
}

# What a C file exports, by name. FM_extract stands for FM1_extract and FM2_extract.
exports_of() { # <file> <option>...
    "${CC:-cc}" -E -P "$@" | tr '\n' ' ' | sed 's/__asm__("[^"]*")//g' |
        { grep -oE '__attribute__\(\(visibility\("default"\)\)\) [^;]*;' || true; } |
        sed -E 's/^[^ ]* //; s/[][(;].*//; s/.*[ *]//' | { grep -vx FM_extract || true; } | sort -u
}

# The constants of C files, by name: what an enum has, and macros that are numbers.
numbers_of() { # <file>...
    sed -nE 's/^#define ([A-Z][A-Z0-9_]*) +[-(~0-9].*/\1/p' "$@"
    "${CC:-cc}" -fpreprocessed -w -E -P "$@" | tr '\n' ' ' |
        { grep -oE 'enum [A-Za-z_]* *\{[^}]*\}' || true; } |
        sed 's/.*{//' | tr ',' '\n' | sed -nE 's/^ *([A-Z][A-Z0-9_]*).*/\1/p'
}

# What abidw sees of C headers. A number is seen as the size of an array.
dump() { # <to> <root of the tree> <header>...
    local header to=$1 options=(-I "$2" -I "$2/ports" -I "$2/cards")
    printf '#include <%s>\n' "${@:3}" >"$work/probe.c"
    exports_of "$work/probe.c" "${options[@]}" >"$work/${to##*/}.exports"
    sed 's/.*/__typeof__(\&&) pointer_to_&;/' "$work/${to##*/}.exports" >>"$work/probe.c"
    for header in "${@:3}"; do
        numbers_of "$2/$header" | sed 's/.*/char (*value_&)[1048576 + &];/' >>"$work/probe.c"
    done
    "${CC:-cc}" -g -fno-eliminate-unused-debug-types -shared -fPIC "${options[@]}" \
        -ffile-prefix-map="$work"=. -ffile-prefix-map="$2"=. \
        -o "$work/probe.so" "$work/probe.c"
    abidw --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed --load-all-types \
        --out-file "$to" "$work/probe.so"
}

mkdir "$work/now"
cd "$tree"
for map in {rmem,billboard,ports/*,cards/*}/exports.map; do
    folder=${map%/*} name=${map%/*}
    name=${name##*/}
    mapfile -t headers < <(find "$folder" -maxdepth 1 -name '*.h' ! -name version.h ! -name both.h)
    dump "$work/now/$name.abi" "$tree" "${headers[@]}"
    nm -D --defined-only "$build/$folder/lib$name.so" | awk 'NF == 3 && $3 ~ /@@/ { print $3 }' |
        grep -v _PRIVATE_ | sort >"$work/now/$name.names"
done


# What a header declares can be linked with. (FM_send stands for FM1_send.)
for exports in "$work"/*.exports; do
    name=$(basename "$exports" .abi.exports)
    sed -E 's/@@.*//; p; s/^FM[12]_/FM_/' "$work/now/$name.names" | sort -u >"$work/exported"
    while read -r function; do
        fail "$function is declared, and not for users in $name's exports.map"
    done < <(comm -23 "$exports" "$work/exported")
done

if [[ ${1:-} == --renew ]]; then
    mkdir -p "$here/abi"
    cp "$work"/now/* "$here/abi"
    exit 0
fi

# Whether what was is as it was.
same() { # <old> <new>
    if [[ $1 == *.names ]]; then
        comm -23 "$1" "$2" | c++filt | sed 's/^/gone: /' >"$work/said"
        [[ ! -s $work/said ]]
    else
        abidiff --no-added-syms "$1" "$2" >"$work/said" 2>&1
    fi
}
for reference in "$here"/abi/*; do
    if [[ ! -e $reference ]]; then continue; fi
    if ! same "$reference" "$work/now/${reference##*/}"; then
        cat "$work/said"
        fail "${reference#"$tree/"} is not as in the last release; is that meant? See $0"
    fi
done

# What is planted is seen.
is_seen() { # <header> <sed command>
    rm -rf "$work/planted"
    mkdir "$work/planted"
    (cd "$tree" && cp --parents rmem/*.h billboard/bbp.h ports/*/*.h cards/*/*.h "$work/planted")
    cp "$work/planted/$1" "$work/before.h"
    sed -i "$2" "$work/planted/$1"
    if cmp -s "$work/planted/$1" "$work/before.h"; then fail "nothing to plant in: $2"; fi
    dump "$work/old.abi" "$tree" "$1"
    dump "$work/new.abi" "$work/planted" "$1"
    if same "$work/old.abi" "$work/new.abi"; then fail "abidiff does not see: $2"; fi
}
is_seen billboard/bbp.h 's/bbp_post_on(\(.*\), int dest/bbp_post_on(\1, long dest/'
is_seen billboard/bbp.h 's/BBP_EBUSY = RMEM_EBUSY/BBP_EBUSY = -12/'
is_seen rmem/rmem.h 's/uint32_t rmem_load/uint64_t rmem_load/'
is_seen ports/dp/dp.h 's/uint64_t again;.*/uint32_t again;/'
is_seen ports/munet/munet.h '/mu_wait/d'
is_seen cards/rfm2g/rfm2g_api.h 's/RFM2G_UINT32 Value);/RFM2G_UINT16 Value);/'
is_seen cards/scgt/scgtapi.h 's/uint32 seqNum;/int seqNum;/'
is_seen cards/scramnet_plus/scrproto.h 's/scr_csr_read(/scr_csr_reads(/'
is_seen ports/gamma/libgamma.h 's/long gamma_msglen/int gamma_msglen/'
printf 'one@@RMEM_0.1\n' >"$work/new.names"
printf 'one@@RMEM_0.1\ntwo@@RMEM_0.1\n' >"$work/old.names"
if same "$work/old.names" "$work/new.names"; then fail "a name that is gone is not seen"; fi
exit $failed
