#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The manual pages are well-formed, refer to pages that exist, and their programs compile and run.
set -euo pipefail
cd "$RMEM_SOURCE_DIR/docs/man"

if ! command -v mandoc >/dev/null; then
    echo "skipped: there is no mandoc here"
    exit 77
fi
# Whether a referenced page is found depends on what is installed; that is checked below.
complaints=$(mandoc -T lint -- *.[137] 2>/dev/null | grep -v 'referenced manual not found' || true)
if [[ -n $complaints ]]; then
    echo "FAILED: mandoc -T lint complains:"
    echo "$complaints"
    exit 1
fi

references=$(sed -nE "s/^(\.It )?\.?Xr ([^ ]+) ([0-9]).*/\2 \3/p" -- *.[137] | sort -u)
[[ $(wc -l <<<"$references") -ge 20 ]] || { echo "FAILED: found no references in the pages"; exit 1; }
failed=0
while read -r name section; do
    [[ $section == 2 || -e $name.$section ]] && continue
    grep -qxE "\.Nm $name( ,)?" ./*."$section" && continue
    echo "FAILED: a page refers to $name($section), which is no page of ours"
    failed=1
done <<<"$references"
[[ $failed == 0 ]] || exit 1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The ports that are libraries.
ports=()
for library in "$RMEM_BUILD_DIR"/ports/*/lib*.so; do
    [[ -e $library ]] && ports+=("$library" "-Wl,-rpath,${library%/*}")
done

# Programs stand in `.Bd -literal` and have a main; backslashes are written \e there.
for page in *.[37]; do
    awk -v base="$work/$page" '
        /^\.Bd -literal/ { inside = 1; text = ""; next }
        /^\.Ed/ { if (inside && text ~ /int main\(/) printf "%s", text > (base ".c"); inside = 0 }
        inside { gsub(/\\e/, "\\"); sub(/^\\&/, ""); text = text $0 "\n" }' "$page"
done
programs=("$work"/*.c)
if [[ ${#programs[@]} -lt 9 ]]; then
    echo "FAILED: only ${#programs[@]} programs found in the pages"
    exit 1
fi

for program in "${programs[@]}"; do
    if ! "${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$RMEM_SOURCE_DIR" -I"$RMEM_SOURCE_DIR/ports" \
        -o "${program%.c}" "$program" "${ports[@]}" -L"$RMEM_BUILD_DIR/billboard" -L"$RMEM_BUILD_DIR/rmem" -lbillboard -lrmem \
        -Wl,-rpath,"$RMEM_BUILD_DIR/billboard:$RMEM_BUILD_DIR/rmem"; then
        echo "FAILED: the program in $(basename "$program" .c) does not compile"
        exit 1
    fi
    if ! "$RMEM_BUILD_DIR/tools/rmem" run -n 3 --join-timeout 20s -- "${program%.c}"; then
        echo "FAILED: the program in $(basename "$program" .c) does not run"
        exit 1
    fi
done
