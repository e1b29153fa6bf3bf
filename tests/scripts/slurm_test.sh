#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# A Slurm of the test's own has two hosts of the lab, which share nothing but files and a network.
# What srun starts is a ring: on one host, between them by datagrams, and by link fabric with
# examples/slurm/ring.sbatch. A job that is cancelled or killed leaves nothing on any host.
# shellcheck source=tests/support/lab.sh
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

readonly host=rmem-${name//_/-} pingpong=$RMEM_BUILD_DIR/examples/pingpong
readonly traffic=$RMEM_BUILD_DIR/tests/lab-traffic example=$RMEM_SOURCE_DIR/examples/slurm
export SLURM_CONF=$work/slurm.conf PATH=$RMEM_BUILD_DIR/tools:$PATH

# On the first host, with nothing in the environment of what the lab says to programs but the key.
first_host() {
    scripts/lab exec 0 --name "$name" -- env --chdir="$work" -u RMEM_LINK -u RMEM_NODE \
        -u RMEM_NODES -u RMEM_RING -u RMEM_GROUP -u RMEM_INTERFACE timeout 120 "$@"
}

# Control groups are not to be had in a namespace, and nothing here needs them.
start_slurm() {
    local daemon number
    mkdir "$work"/{state,spool-"$host"-0,spool-"$host"-1}
    echo 'CgroupPlugin=cgroup/v1' >"$work/cgroup.conf"
    cat >"$SLURM_CONF" <<END
ClusterName=$name
SlurmctldHost=$host-0(10.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
KillWait=5
SlurmdParameters=config_overrides
NodeName=$host-0 NodeAddr=10.0.0.1 CPUs=8
NodeName=$host-1 NodeAddr=10.0.0.2 CPUs=8
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE
END
    for number in 0 1; do
        daemon='mount -t tmpfs cgroup /sys/fs/cgroup && exec slurmd -D'
        ((number == 1)) || daemon="slurmctld -D & $daemon"
        scripts/lab exec "$number" --name "$name" -- unshare --mount sh -c "$daemon" \
            >"$work/daemons-$number" 2>&1 &
    done
    await "both hosts are idle" is_idle
}

is_idle() { [[ $(first_host sinfo --noheader --format='%T %D' 2>/dev/null) == "idle 2" ]]; }
is_done() { jobs=$(first_host squeue --noheader) && [[ -z $jobs ]]; }
left() { find "/run/rmem-lab-$name" "$work" -path '*/shm-*/*' -o -path "$work/ring-*"; }
is_clean() { [[ -z $(left) ]]; }
has_both_nodes() { compgen -G "/run/rmem-lab-$name/shm-0/rmem.*" && compgen -G \
    "/run/rmem-lab-$name/shm-1/rmem.*"; } >/dev/null

# await <what> <condition>
await() {
    local turn
    for ((turn = 0; turn < 200; ++turn)); do
        ! "$2" || return 0
        sleep 0.1
    done
    first_host sinfo --long --Node >>"$output" 2>&1 || true
    cat "$work"/daemons-* >>"$output"
    left >>"$output"
    fail "$1: not in time"
}

good_job() {
    local what=$1
    shift
    first_host "$@" >"$output" 2>&1 || fail "$what"
    await "$what leaves nothing" is_clean
}

ended_job() {
    local what=$1
    shift
    first_host sbatch --ntasks=2 --output="$work/job.out" "$example/ring.sbatch" \
        "$pingpong" --count 100000000 >"$output" 2>&1 || fail "$what: sbatch"
    await "$what has begun" has_both_nodes
    first_host scancel --user=root "$@" || fail "$what: scancel"
    await "$what ends" is_done
    cat "$work/job.out" >"$output"
    await "$what leaves nothing" is_clean
}

need_namespaces ip nft unshare slurmctld slurmd srun
scripts/lab up 2 --apart --name "$name" >"$output" 2>&1 || fail "a lab of 2 hosts"
start_slurm

good_job "a job of one host" srun --nodes=1 --ntasks=2 "$pingpong" --count 1000
good_job "a job of two hosts by datagrams" srun --nodes=2 --ntasks=2 "$traffic" 100 1
good_job "a job of two hosts by link fabric" \
    sbatch --wait --output="$work/job.out" "$example/ring.sbatch" "$traffic" 100 2
[[ $(grep -c 'rank [0-3] of 4: all in order' "$work/job.out") == 4 ]] ||
    { cat "$work/job.out"; fail "not all of the job's 4 ranks were in the ring"; }
ended_job "a cancelled job"
ended_job "a killed job" --signal=KILL
