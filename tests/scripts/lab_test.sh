#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
#
# scripts/lab: hosts that reach each other, lose what they are told to, run programs, and are gone
# afterwards. What needs no namespaces is tested without root as well.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

lab() { scripts/lab "$1" --name "$name" "${@:2}" >"$output" 2>&1; }
# refused <sentence> <argument>...: the lab refuses it, with a sentence that has these words.
refused() {
    local sentence=$1
    shift
    ! lab "$@" || fail "lab $* is refused"
    grep -q "$sentence" "$output" || fail "lab $* is refused with '$sentence'"
}
left() {
    ip netns list | grep "rmem-$name-" || true
    ls -d "/run/rmem-lab-$name" 2>/dev/null || true
}

scripts/lab --help | grep "^examples:" >/dev/null || fail "--help has examples"
if ((EUID != 0)); then
    refused "only root may make network namespaces" up 2
fi
need_namespaces ip nft ping

# ---- Up, also over what is left of one that was made by half

ip netns add "rmem-$name-net"
refused "is there already" up 2
lab down || fail "down takes half a lab away"
[[ -z $(left) ]] || fail "down leaves nothing of half a lab"
refused "there is no lab" status
refused "must be 1 to 200" up many
refused "'5' is no loss" up 2 --loss 5
[[ -z $(left) ]] || fail "what was refused leaves nothing"
lab up 3 || fail "up makes three hosts"
refused "is there already" up 3

# ---- The network

# hears <host> <host>: how many of 60 echoes come back.
hears() {
    lab exec "$1" -- ping -q -n -c 60 -i 0.005 -W 1 "10.0.0.$(($2 + 1))" || true
    sed -nE 's/.* ([0-9]+) received.*/\1/p' "$output"
}
(($(hears 0 1) == 60)) || fail "without loss everything comes"
lab loss 40% 1 || fail "loss is set"
some=$(hears 0 1)
((some > 0 && some < 60)) || fail "with loss some of it comes"
(($(hears 0 2) == 60)) || fail "the others lose nothing"
lab loss 100% 1
(($(hears 0 1) == 0)) || fail "with 100% nothing comes"
lab status
grep -q "loses 100%: 60 lost" "$output" || fail "status counts what was lost"
lab loss 0%
lab cut 0-1 2
(($(hears 0 2) == 0 && $(hears 1 2) == 0)) || fail "a cut separates both sides"
(($(hears 0 1) == 60)) || fail "who is on one side goes on"
lab heal
lab cut 0 2 --one-way
lab exec 0 -- ping -q -c 3 -i 0.005 -W 1 10.0.0.3 || true
lab status
grep -A2 "^host 2 " "$output" | grep "does not hear host 0: 3 lost" >/dev/null ||
    fail "one way, what 0 sends is lost at 2"
! grep -A1 "^host 0 " "$output" | grep "does not hear" >/dev/null || fail "0 still hears 2"
lab heal
(($(hears 0 2) == 60)) || fail "a cut heals"
refused "no hosts of lab" cut 0 3
refused "on both sides" cut 0-1 1-2

# ---- Programs

# shellcheck disable=SC2016  # expanded on the host
tells='echo "$RMEM_LINK $RMEM_NODE of $RMEM_NODES"; wc -c <"$RMEM_KEY_FILE"; exit "$RMEM_NODE"'
lab run -- sh -c "$tells" &&
    fail "run ends with the worst status"
(($? == 2)) || fail "run ends with 2, the worst status"
for host in 0 1 2; do
    grep -qx "\[$host\] udp $host of 3" "$output" || fail "host $host knows its place"
done
grep -qx "\[0\] 32" "$output" || fail "there is a key"
lab run --hosts 1 -- sh -c 'echo only; echo error >&2' || fail "run on one host"
[[ $(sort "$output") == "[1] error"$'\n'"[1] only" ]] || fail "both outputs have the host in front"
# shellcheck disable=SC2016  # expanded on the host
lab run --hosts 1-2 -- sh -c 'echo "node $RMEM_NODE of $RMEM_NODES"' ||
    fail "run on two of three hosts"
for line in "[1] node 0 of 2" "[2] node 1 of 2"; do
    grep -qxF "$line" "$output" || fail "the hosts that were chosen are all of the ring: $line"
done
scripts/lab --help | grep "apt-get install iproute2 nftables" >/dev/null ||
    fail "--help names its packages"
segment=/dev/shm/rmem.lab-$name@0
# shellcheck disable=SC2016  # expanded on the host
lab run --hosts 0 -- sh -c ': >"/dev/shm/rmem.$RMEM_RING@0"; kill -KILL $$' &&
    fail "a killed program fails"
[[ ! -e $segment ]] || fail "what a killed program leaves is removed"

# Ends when it is told to, and so do its programs.
scripts/lab run --name "$name" -- sh -c 'echo up; sleep 1000; echo on' >"$output" 2>&1 &
job=$!
for ((i = 0; i < 500; ++i)); do
    (($(grep -c up "$output" || true) < 3)) || break
    sleep 0.02
done
kill "$job"
code=0
wait "$job" || code=$?
((code == 143)) || fail "run ends with 143 after SIGTERM, not $code"
lab status
(($(grep -c " 0 programs" "$output") == 3)) || fail "no program is left"

# ---- Down

lab exec 0 -- sh -c 'trap "" TERM; sleep 1000 & sleep 1000' &
for ((i = 0; i < 500; ++i)); do
    [[ -z $(ip netns pids "rmem-$name-0") ]] || break
    sleep 0.02
done
scripts/lab down --name "$name" || fail "down"
[[ -z $(left) ]] || fail "down leaves nothing"
lab down || fail "down a second time has nothing to do"

# ---- Hosts that stand apart, and are reached as by ssh

lab up 2 --apart || fail "up makes two hosts that stand apart"
# shellcheck disable=SC2016  # expanded on the host
lab exec 0 -- sh -c 'echo mine >"/dev/shm/$RMEM_RING"' || fail "a host has a /dev/shm"
[[ ! -e /dev/shm/lab-$name ]] || fail "what one host has in /dev/shm is not in this one's"
lab exec 1 -- sh -c 'ls -A /dev/shm; hostname'
[[ $(<"$output") == "rmem-${name//_/-}-1" ]] ||
    fail "each host has a name, and sees nothing of the other's /dev/shm"
# shellcheck disable=SC2016  # expanded on the other host
lab exec 1 -- scripts/lab-ssh -x 10.0.0.1 \
    'cat /dev/shm/*;' 'echo "$HOME ${RMEM_RING:-none}"; exit 7' &&
    fail "the exit code is the command's"
(($? == 7)) || fail "the exit code is the command's, 7"
[[ $(<"$output") == mine$'\n'"$HOME none" ]] ||
    fail "a command reaches another host, and nothing of the environment does"
lab exec 1 -- scripts/lab-ssh 10.0.0.9 true && fail "there is no such host"
grep -q "no hosts of lab" "$output" || fail "a host that is not there is named"
! scripts/lab-ssh 10.0.0.1 true 2>"$output" || fail "outside of a lab there is nobody to reach"
grep -q "this is no lab's host" "$output" || fail "who is outside of a lab is told so"
lab down || fail "down"
[[ -z $(left) ]] || fail "down leaves nothing of hosts that stood apart"
! grep -q "rmem-lab-$name" /proc/mounts || fail "down leaves nothing mounted"
