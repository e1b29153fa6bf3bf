#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# On a real text of some MB the counts are those of `wc -w` and of `sort | uniq -c`.
# shellcheck source=tests/support/examples.sh
source "$RMEM_SOURCE_DIR/tests/support/examples.sh"
export LC_ALL=C

# Licences and copyright notices: every Debian system has megabytes of them.
shopt -s nullglob
cat /dev/null /usr/share/common-licenses/* /usr/share/doc/*/copyright 2>"$work/errors" |
    head -c 3000000 >"$work/text" || true
(($(wc -c <"$work/text") >= 1000000)) ||
    skip "less than 1 MB of text in /usr/share/common-licenses and /usr/share/doc"

uniq_counts() {
    tr -s '[:space:]' '\n' <"$1" | sed '/^$/d' | sort | uniq -c | awk '{ print $1, $2 }'
}

counts_as_the_real_tools() {
    local count
    uniq_counts "$work/text" >"$work/expected"
    for count in 1 2 4; do
        ranks "$1" "$count" wordcount "$work/text" --counts "$work/counts" >"$work/out"
        cmp "$work/expected" "$work/counts"
    done

    # wc counts no words of bytes that it cannot print, so it gets none.
    tr -cd '\t\n\r\f\v -~' <"$work/text" >"$work/ascii"
    ranks "$1" 3 wordcount "$work/ascii" >"$work/out"
    expect "$work/out" "$(wc -w <"$work/ascii") words, "
}

# Words longer than a block, spaces in masses, an empty text, several files.
cuts_no_word() {
    printf 'a %01000d b\n\n%5000s c\tab ba' 0 '' >"$work/odd"
    : >"$work/empty"
    local block
    for block in 1 7 100000; do
        ranks "$1" 3 wordcount --block "$block" --counts "$work/counts" \
            "$work/odd" "$work/empty" "$work/odd" >"$work/out"
        { cat "$work/odd"; echo; cat "$work/odd"; } >"$work/both"
        uniq_counts "$work/both" | cmp - "$work/counts"
    done
    ranks "$1" 3 wordcount "$work/empty" >"$work/out"
    expect "$work/out" "0 words, 0 different"
}

on_every_link counts_as_the_real_tools
on_every_link cuts_no_word
