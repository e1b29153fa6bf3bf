#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full wide
#
# Plain MPI programs run on hosts of the lab, which have nothing in common but files and a network;
# their launchers reach them by scripts/lab-ssh, as real ones by ssh, and are told nothing but the
# hosts and the key. What is sent arrives, over the ring and not over TCP, also where the network
# loses some of it; a rank's death is an error, and leaves nothing on any host. With Open MPI, and
# with the MPICH of mpi_channel/mpich/build.
# shellcheck source=tests/support/mpi.sh
source "$RMEM_SOURCE_DIR/tests/support/mpi.sh"
# shellcheck source=tests/support/lab.sh
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

# mpi_traffic sends one message of that size to another host; what launchers, and ranks' last
# words, need is less than that.
readonly longest=$((64 << 20)) wire_up=$((1 << 20))

lab() { scripts/lab "$1" --name "$name" "${@:2}"; }
address() { echo "10.0.0.$(($1 + 1))"; }
addresses() { echo 10.0.0.{1..4} | cut -d ' ' -f "1-$1" | tr ' ' ,; }

# Other hosts are cleaned as soon as their ranks have ended, which MPICH's launcher does not wait
# for.
left_nothing() {
    local left turn
    for ((turn = 0; turn < 100; ++turn)); do
        left=$(find "/run/rmem-lab-$name" -path '*/shm-*/*')
        [[ -n $left ]] || return 0
        sleep 0.1
    done
    fail "$1 left $left"
}

count_arrivals() {
    local host
    for host in 0 1 2 3; do
        ip netns exec "rmem-$name-$host" nft -f - <<'END'
table inet arrivals {
    counter by_tcp { }
    counter by_udp { }
    chain count {
        type filter hook input priority 10
        iifname "eth0" meta l4proto tcp counter name by_tcp
        iifname "eth0" meta l4proto udp counter name by_udp
    }
}
END
    done
}

# arrived <host> <protocol>: bytes since it was last asked.
arrived() {
    ip netns exec "rmem-$name-$1" nft reset counter inet arrivals "by_$2" |
        sed -nE 's/.*bytes ([0-9]+).*/\1/p'
}

# traffic_among <hosts> <what> <ranks> <list of hosts>: what they send goes over the ring.
traffic_among() {
    local hosts=$1 what=$2 ranks=$3 host bytes
    for ((host = 0; host < hosts; ++host)); do
        arrived "$host" tcp >/dev/null
        arrived "$host" udp >/dev/null
    done
    launcher=("${start[@]}" "$4")
    good_run "$ranks" "$what" "$work/traffic"
    for ((host = 0; host < hosts; ++host)); do
        bytes=$(arrived "$host" udp)
        ((bytes > longest)) || fail "$what: only $bytes bytes came to host $host by datagrams"
        bytes=$(arrived "$host" tcp)
        ((bytes < wire_up)) || fail "$what: $bytes bytes came to host $host by TCP"
    done
}

# by_fabric <option> <wrapper>: over TCP, by link fabric.
by_fabric() {
    local what="$1: two ranks on each of 2 hosts, by link fabric" bytes
    mkdir -p "$work/meet"
    launcher=(scripts/lab exec 0 --name "$name" -- env -u RMEM_INTERFACE RMEM_LINK=fabric
        "RMEM_GROUP=$work/meet" "$2" "$1" "$(address 0):2,$(address 1):2")
    arrived 1 tcp >/dev/null
    good_run 4 "$what" "$work/traffic"
    bytes=$(arrived 1 tcp)
    ((bytes > longest)) || fail "$what: only $bytes bytes came to host 1 by TCP"
    [[ -z $(ls "$work/meet") ]] || fail "$what left $(ls "$work/meet")"
}

# past_ring <option> <wrapper>: long messages over TCP, all others by datagrams.
past_ring() {
    local what="$1: two ranks on each of 2 hosts, long messages past the ring" bytes
    launcher=(scripts/lab exec 0 --name "$name" -- env -u RMEM_LINK -u RMEM_INTERFACE -u RMEM_GROUP
        RMEM_BULK=fabric "$2" "$1" "$(address 0):2,$(address 1):2")
    arrived 1 tcp >/dev/null
    arrived 1 udp >/dev/null
    good_run 4 "$what" "$work/traffic"
    bytes=$(arrived 1 tcp)
    ((bytes > longest)) || fail "$what: only $bytes bytes came to host 1 by TCP"
    bytes=$(arrived 1 udp)
    ((0 < bytes && bytes < longest)) || fail "$what: $bytes bytes came to host 1 by datagrams"
}

# on_hosts <the launcher's option before the hosts>
on_hosts() {
    local wrapper=${launcher[0]} option=$1
    build traffic collectives
    # The key is all that the ranks are told.
    start=(scripts/lab exec 0 --name "$name" --
        env -u RMEM_LINK -u RMEM_INTERFACE -u RMEM_GROUP "$wrapper" "$option")

    traffic_among 2 "$option: a rank on each of 2 hosts" 2 "$(addresses 2)"
    traffic_among 4 "$option: a rank on each of 4 hosts" 4 "$(addresses 4)"
    good_run 4 "$option: collectives of 4 hosts" "$work/collectives"
    traffic_among 2 "$option: two ranks on each of 2 hosts" 4 "$(address 0):2,$(address 1):2"

    lab loss 5%
    traffic_among 2 "$option: two ranks on each of 2 hosts, which lose 5 % of all datagrams" \
        4 "$(address 0):2,$(address 1):2"
    [[ $(lab status) == *"loses 5%: "[1-9]* ]] || fail "no datagram was lost"
    lab loss 0%

    by_fabric "$option" "$wrapper"
    past_ring "$option" "$wrapper"

    launcher=("${start[@]}" "$(addresses 3)")
    bad_end "$option: a rank on another host is killed" "$work/traffic" kill
    bad_end "$option: a rank on another host aborts" "$work/traffic" die

    start=(scripts/lab exec 0 --name "$name" -- env -u RMEM_KEY_FILE "$wrapper" "$option")
    launcher=("${start[@]}" "$(addresses 3)")
    bad_end "$option: there is no key" "$work/traffic"
    grep -q 'bbp: other hosts may hear the ring .*set RMEM_KEY_FILE' "$output" ||
        fail "nobody says that a key is missing"
}

need_namespaces ip nft unshare
use_open_mpi
lab up 4 --apart >"$output" 2>&1 || fail "a lab of 4 hosts"
count_arrivals
unset RMEM_LINK RMEM_INTERFACE RMEM_KEY_FILE
# A rank that waits long for a processor, while others lose its datagrams, must not be anybody's
# death.
export RMEM_DEAD_TIMEOUT=20s
# Of all that libfabric may tell, what ranks have sent.
export FI_LOG_SUBSYS=ep_data
on_hosts --host
use_mpich
on_hosts -hosts
