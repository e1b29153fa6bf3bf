#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# What examples/kubernetes/ring.yaml names is there, under these names; and its pods, on two hosts
# of the lab which learn each other's names only after the programs have begun, are a ring.
# shellcheck source=tests/support/lab.sh
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

python3 -c 'import yaml' 2>"$output" || skip "python3 has no yaml"
# Prints the settings of the pods, and writes what they run.
python3 - "$RMEM_SOURCE_DIR/examples/kubernetes/ring.yaml" "$work/command" >"$work/settings" \
    2>"$output" <<'END' || fail "the manifest holds"
import sys, yaml

service, pods = yaml.safe_load_all(open(sys.argv[1], encoding="utf-8"))
assert (service["apiVersion"], service["kind"]) == ("v1", "Service"), service
assert (pods["apiVersion"], pods["kind"]) == ("apps/v1", "StatefulSet"), pods
name, spec = pods["metadata"]["name"], pods["spec"]
labels = spec["template"]["metadata"]["labels"]
assert spec["serviceName"] == service["metadata"]["name"]
assert service["spec"]["selector"] == spec["selector"]["matchLabels"] == labels
assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"]
assert spec["podManagementPolicy"] == "Parallel"
(pod,) = spec["template"]["spec"]["containers"]
volumes = {v["name"]: v for v in spec["template"]["spec"]["volumes"]}
mounts = {m["mountPath"]: m["name"] for m in pod["volumeMounts"]}
assert set(mounts.values()) == set(volumes)
assert volumes[mounts["/dev/shm"]]["emptyDir"]["medium"] == "Memory"
settings = {e["name"]: e["value"] for e in pod["env"]}
assert all(isinstance(value, str) for value in settings.values())
folder, key = settings["RMEM_KEY_FILE"].rsplit("/", 1)
assert volumes[mounts[folder]]["secret"] == {"secretName": "ring-key", "defaultMode": 0o400}
(port,) = pod["ports"]
assert port["containerPort"] == service["spec"]["ports"][0]["port"]
nodes = [f"{name}-{n}.{spec['serviceName']}:{port['containerPort']}"
         for n in range(spec["replicas"])]
assert settings["RMEM_GROUP"].split(",") == nodes and settings["RMEM_NODES"] == str(len(nodes))
assert set(pod["resources"]) == {"requests", "limits"}
assert pod["command"][:2] == ["sh", "-c"]
open(sys.argv[2], "w", encoding="utf-8").write(pod["command"][2])
print(*(f"{k}={v}" for k, v in settings.items() if k != "RMEM_KEY_FILE"), sep="\n")
END

need_namespaces ip nft unshare
ldconfig -p | grep libfabric >"$output" || skip "there is no libfabric"
scripts/lab up 2 --apart --name "$name" >"$output" 2>&1 || fail "a lab of 2 hosts"
mkdir "$work/bin"
printf '#!/bin/sh\nexec %s/tests/lab-traffic 100 1\n' "$RMEM_BUILD_DIR" >"$work/bin/program"
chmod +x "$work/bin/program"
echo '127.0.0.1 localhost' >"$work/hosts"

# pod <number>: what is run in it, as the lab's host of that number.
pod() {
    local settings
    mapfile -t settings <"$work/settings"
    # shellcheck disable=SC2016  # expanded on the host
    exec scripts/lab exec "$1" --name "$name" -- unshare --mount env -u RMEM_NODE \
        -u RMEM_INTERFACE "${settings[@]}" "HOSTNAME=ring-$1" "PATH=$work/bin:$PATH" \
        sh -c 'mount --bind "$0" /etc/hosts && exec sh -c "$1"' "$work/hosts" \
        "$(cat "$work/command")"
}

pods=()
for number in 0 1; do
    pod "$number" >"$work/pod-$number" 2>&1 &
    pods+=($!)
    sleep 0.5
done
printf '10.0.0.1 ring-0.ring\n10.0.0.2 ring-1.ring\n' >>"$work/hosts"
for number in 0 1; do
    result=0
    wait "${pods[number]}" || result=$?
    cp "$work/pod-$number" "$output"
    ((result == 0)) || fail "pod $number ends with $result"
    grep -q "rank $number of 2: all in order" "$output" || fail "pod $number is not in the ring"
done
