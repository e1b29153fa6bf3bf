#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# scripts/figures: the page of today's figures is up to date, and a wrong row is refused by name.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"
need python3 git

# `output` is the text itself here.
fail() {
    printf '%s\nFAILED: %s\n' "$output" "$1"
    exit 1
}

# Runs the copy of scripts/figures; sets output and code.
figures() {
    code=0
    output=$("$work/scripts/figures" "$@" 2>&1) || code=$?
}

# A copy of the tree's figures, as they are.
copy() {
    rm -rf "${work:?}"/* "$work/.git"
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

# A row is marked from the change of its code on; where there is no history, it stays as it is.
is_marked() { grep -qF "| $quantity | 1 ns |  |  | [2026-11-27](check.md) $commit † |" \
    "$work/docs/measurements/README.md"; }
in_git() { git -C "$work" -c user.name=a -c user.email=a "$@"; }
copy
mkdir -p "$work/billboard" "$work/ports"
touch "$work/billboard/a.cpp" "$work/ports/a.cpp"
in_git init -q && in_git add . && in_git commit -q -m a
commit=$(in_git rev-parse --short=8 HEAD)
change "row.update(now='1 ns', page='check.md', code='messages', commit='$commit')
del row['floor'], row['rival']"
figures
is_marked && fail "what is as it was is not marked"
echo 1 >"$work/ports/a.cpp"
figures --check
[[ $code == 0 ]] || fail "a change elsewhere marks nothing"
echo 1 >"$work/billboard/a.cpp"
figures --check
[[ $code == 1 ]] || fail "a change of the code is noticed"
figures
is_marked || fail "what has changed is marked"
rm -rf "$work/.git"
figures --check
[[ $code == 0 ]] || fail "without history the page is as it is"

refuses 'del row["now"]' "has no field now"
refuses 'row["link"] = "rign"' "has the link rign, which is none of direct, ring"
refuses 'row["code"] = "all"' "has the code all, which is none of memory"
refuses 'row["commit"] = "HEAD"' 'has the commit "HEAD"'
refuses 'row["colour"] = "red"' "has a field colour"
refuses 'row["now"] = ""' "has an empty now"
refuses 'row["now"] = 5' "has a now that is not one line of text"
refuses 'row["date"] = "2026-02-30"' 'has the date "2026-02-30"'
refuses 'row["date"] = "yesterday"' 'has the date "yesterday"'
refuses 'row["page"] = "archive/none.md"' "names the page archive/none.md"
refuses 'row["page"] = "check.md#nothing"' "names the heading #nothing"
refuses 'rows[1] = rows[0]' "is there twice"
