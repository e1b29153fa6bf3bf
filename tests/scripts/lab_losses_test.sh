#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# Hosts of the lab send each other messages while the kernel loses 1, 5 and 20 % of all datagrams,
# while others come twice, late or damaged, and while cables are cut and heal. Each message comes
# once, in order, intact.
#
#     RMEM_LAB_MESSAGES=1000000 RMEM_LAB_HOSTS=6 ctest -R lab_losses     the long run
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

readonly messages=${RMEM_LAB_MESSAGES:-2000} hosts=${RMEM_LAB_HOSTS:-3}

need_namespaces ip nft
lab() { scripts/lab "$1" --name "$name" "${@:2}"; }

# traffic <seed> [times]: all hosts send and receive, `times` times the messages; the ring's name is
# new each time.
traffic() {
    RMEM_RING="$name-$1" RMEM_RANKS=$hosts lab run -- \
        "$RMEM_BUILD_DIR/tests/lab-traffic" $((messages * ${2:-1})) "$1" >"$output" 2>&1
}
say() {
    echo "$1: $(grep -c 'all in order' "$output") hosts," \
        "$(grep -o 'after .*' "$output" | sort | tail -1)"
}

lab up "$hosts" >"$output" 2>&1 || fail "up"
for loss in 1 5 20; do
    lab loss "$loss%" >/dev/null
    traffic "$loss" || fail "all comes in order where $loss % are lost"
    [[ $(lab status) == *"loses $loss%: "[1-9]* ]] || fail "datagrams were lost"
    say "$loss % lost"
done

lab loss 1% >/dev/null
RMEM_FAULTS='duplicate:share=5%,by=300us; hold:by=200us,share=5%; corrupt:share=1%' traffic 41 ||
    fail "all comes in order where datagrams come twice, late and damaged"
say "twice, late, damaged"

lab loss 0% >/dev/null
(
    for _ in 1 2 3 4; do
        sleep 0.3
        lab cut 0 1
        sleep 0.3
        lab heal
        lab cut 1 2 --one-way
        sleep 0.3
        lab heal
    done
) >/dev/null 2>&1 &
cuts=$!
# A cut that lasts on a busy host must not be anybody's death.
RMEM_DEAD_TIMEOUT=20s traffic 42 10 || fail "all comes in order where cables are cut and heal"
wait "$cuts"
say "cables cut"
