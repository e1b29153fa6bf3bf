#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# The manual pages are well-formed, refer to pages that exist, and their programs compile and run.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"
cd "$RMEM_SOURCE_DIR/docs/man"

need mandoc
# Whether a referenced page is found depends on what is installed; that is checked below.
mandoc -T lint -- *.[137] 2>/dev/null | grep -v 'referenced manual not found' >"$output" || true
[[ ! -s $output ]] || fail "mandoc -T lint complains"

references=$(sed -nE "s/^(\.It )?\.?Xr ([^ ]+) ([0-9]).*/\2 \3/p" -- *.[137] | sort -u)
[[ $(wc -l <<<"$references") -ge 20 ]] || fail "found no references in the pages"
failed=0
while read -r name section; do
    [[ $section == 2 || -e $name.$section ]] && continue
    grep -qxE "\.Nm $name( ,)?" ./*."$section" && continue
    echo "FAILED: a page refers to $name($section), which is no page of ours"
    failed=1
done <<<"$references"
[[ $failed == 0 ]] || exit 1

# Programs stand in `.Bd -literal` and have a main; backslashes are written \e there. One that
# includes a header of C++ is C++. A literal that begins with `$ rmem run` is how the page's program
# is run, and what it prints, in any order.
for page in *.[37]; do
    awk -v base="$work/$page" '
        /^\.Bd -literal/ { inside = 1; text = ""; next }
        /^\.Ed/ {
            if (inside && text ~ /int main\(/)
                printf "%s", text > (base (text ~ /#include <[^>]*hpp>/ ? ".cpp" : ".c"))
            if (inside && text ~ /^\$ rmem run /)
                printf "%s", text > (base ".shown")
            inside = 0
        }
        inside { gsub(/\\e/, "\\"); sub(/^\\&/, ""); text = text $0 "\n" }' "$page"
done
programs=("$work"/*.c "$work"/*.cpp)
[[ ${#programs[@]} -ge 13 ]] || fail "only ${#programs[@]} programs found in the pages"

# What a program includes of the ports and cards it is linked with.
libraries=(-L"$RMEM_BUILD_DIR/billboard" -L"$RMEM_BUILD_DIR/rmem")
path=$RMEM_BUILD_DIR/billboard:$RMEM_BUILD_DIR/rmem:$RMEM_BUILD_DIR/maps
libraries+=(-L"$RMEM_BUILD_DIR/maps" -lrmem-maps)
for library in "$RMEM_BUILD_DIR"/{ports,cards}/*/lib*.so; do
    [[ -e $library ]] || continue
    name=$(basename "$library" .so)
    libraries+=(-L"$(dirname "$library")" "-l${name#lib}")
    path+=:$(dirname "$library")
done
# Unit 0 of cards is the ring's node, where no other is.
export XDG_RUNTIME_DIR=$work
# The programs of MU-Net need their node's daemon.
export RMEM_MUNET=$work/munet
"$RMEM_BUILD_DIR/tools/rmem" node --munet --quiet --ring "manual-$$" &
daemon=$!
at_end() { kill "$daemon" && wait "$daemon"; }
await "the daemon" test -S "$RMEM_MUNET"

# build <program>: what is left is the executable, without the suffix.
build() {
    local compiler=("${CC:-cc}" -std=c11)
    [[ $1 == *.c ]] || compiler=("${CXX:-c++}" -std=c++20)
    "${compiler[@]}" -O2 -Wall -Wextra -Wpedantic -Werror \
        -I"$RMEM_SOURCE_DIR" -I"$RMEM_SOURCE_DIR/ports" -I"$RMEM_SOURCE_DIR/cards/rfm2g" \
        -o "${1%.*}" "$1" \
        -Wl,--as-needed "${libraries[@]}" -lbillboard -lrmem -Wl,-rpath,"$path"
}
for program in "${programs[@]}"; do
    build "$program" &
    builds+=($!)
done
for one in "${builds[@]}"; do
    wait "$one" || failed=1
done
shown=0
for program in "${programs[@]}"; do
    page=$(basename "${program%.*}")
    if [[ ! -x ${program%.*} ]]; then
        echo "FAILED: the program in $page does not compile"
        continue
    fi
    how=(-n 3)
    if [[ -e ${program%.*}.shown ]]; then
        read -ra how < <(sed -n '1s/^\$ rmem run \(.*\) -- .*/\1/p' "${program%.*}.shown")
        shown=$((shown + 1))
    fi
    if ! "$RMEM_BUILD_DIR/tools/rmem" run "${how[@]}" --join-timeout 20s -- "${program%.*}" |
        tee "${program%.*}.out"; then
        echo "FAILED: the program in $page does not run"
        failed=1
    elif [[ -e ${program%.*}.shown ]] && ! diff <(sed 1d "${program%.*}.shown" | sort) \
        <(sort "${program%.*}.out"); then
        echo "FAILED: the program in $page prints something else"
        failed=1
    fi
done
[[ $shown -ge 3 ]] || fail "found $shown pages that show what they print"
((failed == 0))
