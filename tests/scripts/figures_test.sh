#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# scripts/figures: the page of today's figures is up to date, and a wrong row is refused by name.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    printf 'failed: %s\n%s\n' "$1" "$output"
    exit 1
}

# Runs the copy of scripts/figures; sets output and code.
figures() {
    code=0
    output=$("$work/scripts/figures" "$@" 2>&1) || code=$?
}

# A copy of the tree's figures, as they are.
copy() {
    rm -rf "${work:?}"/*
    mkdir -p "$work/scripts" "$work/docs/measurements"
    cp "$RMEM_SOURCE_DIR/scripts/figures" "$work/scripts/"
    cp -r "$RMEM_SOURCE_DIR"/docs/measurements/{archive,*.md,figures.json} \
        "$work/docs/measurements/"
}

# Changes row 2 of the copy by a statement of Python; sets quantity to its name.
change() {
    quantity=$(python3 - "$work/docs/measurements/figures.json" "$1" <<'END'
import json, sys
path, statement = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    rows = json.load(file)
row = rows[1]
exec(statement)
print(rows[1]["quantity"])
with open(path, "w", encoding="utf-8") as file:
    json.dump(rows, file)
END
    )
}

# A wrong row is refused with its name and the reason, and nothing is written.
refuses() {
    copy
    change "$1"
    figures
    [[ $code == 1 ]] || fail "refused with 1, not $code: $1"
    [[ $output == *"row 2 (\"$quantity\") $2"* ]] || fail "\"$2\" is said of row 2: $1"
    cmp -s "$RMEM_SOURCE_DIR/docs/measurements/README.md" "$work/docs/measurements/README.md" ||
        fail "a refused row leaves the page as it is: $1"
}

code=0
output=$("$RMEM_SOURCE_DIR/scripts/figures" --check 2>&1) || code=$?
[[ $code == 0 && -z $output ]] || fail "docs/measurements/README.md is up to date"

copy
change 'row["now"] = "1 | 2 ns"'
figures --check
[[ $code == 1 && $output == *"run \`scripts/figures\`"* ]] || fail "a changed row is noticed"
figures
[[ $code == 0 && -z $output ]] || fail "the page is written"
grep -qF "| $quantity | 1 \\| 2 ns |" "$work/docs/measurements/README.md" || fail "with the new row"
figures --check
[[ $code == 0 && -z $output ]] || fail "what was written is up to date"

copy
echo "# A newer page, 2099-01-01" >"$work/docs/measurements/archive/newer-2099-01-01.md"
figures --check
[[ $code == 1 ]] || fail "a new page is noticed"

refuses 'del row["floor"]' "has no field floor"
refuses 'row["colour"] = "red"' "has a field colour"
refuses 'row["now"] = ""' "has an empty now"
refuses 'row["now"] = 5' "has a now that is not one line of text"
refuses 'row["date"] = "2026-02-30"' 'has the date "2026-02-30"'
refuses 'row["date"] = "yesterday"' 'has the date "yesterday"'
refuses 'row["page"] = "archive/none.md"' "names the page archive/none.md"
refuses 'row["page"] = "check.md#nothing"' "names the heading #nothing"
refuses 'rows[1] = rows[0]' "is there twice"
