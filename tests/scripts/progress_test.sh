#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# scripts/lib/progress on what a build and a test run print.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"
need python3
progress=$RMEM_SOURCE_DIR/scripts/lib/progress

fail() {
    printf 'failed: %s\n%s\n' "$1" "$output"
    exit 1
}

# A build: its last step is shown with the time, what is no step stays, and the exit code is the
# command's.
code=0
output=$("$progress" bash -c 'echo "[1/2] Building a"; echo "a.cpp:3: warning: odd"
    echo "[2/2] Linking"; exit 3') || code=$?
[[ $code == 3 ]] || fail "the exit code is the command's, not $code"
[[ $output == *"a.cpp:3: warning: odd"* ]] || fail "a warning is shown"
[[ $output =~ \[2/2,\ 0:[0-9]+\ gone,\ about\ 0:00\ left\] ]] || fail "the last step tells the time"

# Who ends it is not shown where in the program it was.
code=0
output=$(timeout --preserve-status -s INT 3 "$progress" sleep 20 2>&1) || code=$?
[[ $code == 130 && $output != *Traceback* ]] || fail "it ends by ^C with 130 and no word, not $code"

# A test run: the cases and what was skipped are counted from the log, and the runner's summary
# comes last.
mkdir -p "$work/Testing/Temporary"
cat >"$work/Testing/Temporary/LastTest.log" <<'END'
1/3 Testing: rmem/segment
[==========] 48 tests from 2 test suites ran. (5 ms total)
2/3 Testing: rmem/users
a_test.cpp:12: Skipped
needs root
b_test.cpp:30: Skipped
needs root
[==========] 4 tests from 1 test suite ran. (1 ms total)
3/3 Testing: scripts/lab
skipped: there is no nft
END
output=$("$progress" --tests "$work" bash -c 'echo "1/3 Test #1: rmem/segment ... Passed 0.01 sec"
    echo "100% tests passed, 0 tests failed out of 3"; echo; echo "Total Test time (real) = 1 sec"')
[[ $output == *"Passed 0.01 sec"*"gone, about"* ]] || fail "a test tells the time"
[[ $output == *"52 cases inside the test programs; 3 cases or tests skipped"* ]] ||
    fail "the cases are counted"
[[ $output == *"rmem/users: needs root (2 cases)"* ]] || fail "a reason stands once, with its cases"
[[ $output == *"scripts/lab: there is no nft"* ]] || fail "a skipped script tells its reason"
[[ $output == *"Total Test time (real) = 1 sec" ]] || fail "the runner's summary comes last"

output=$("$progress" --tests "$work" bash -c 'echo "1/2 Test #1: rmem/segment ...***Failed 0 sec"
    echo "    Test #1: rmem/segment ....   Passed 0.01 sec"
    echo "100% tests passed"')
[[ $output == *"Passed in the second attempt only: rmem/segment"* ]] ||
    fail "a test that has failed before it passed is named"

# What the steps and the tests took, on a page.
cat >>"$work/Testing/Temporary/LastTest.log" <<'END'
1/2 Test: asan/rmem/segment
Test time =  37.40 sec
2/2 Test: rmem/segment
Test time =  61.00 sec
END
printf '%s\n' '20 packages' '100 building release' >"$work/steps"
output=$("$progress" --tests "$work" --page "$work/page.md" bash -c 'exit 1') || true
output=$(cat "$work/page.md")
[[ $output == *"| building release | 1:40 |"*"| testing | 0:00 |"*"| all | 2:00 |"* ]] ||
    fail "the steps are added up"
[[ $output == *"| release | 1 | 1:01 |"*"| asan | 1 | 0:37 |"* ]] ||
    fail "the builds are told apart"
[[ $output == *"| rmem/segment | 61 |"*"| asan/rmem/segment | 37 |"* ]] ||
    fail "the longest is first"
