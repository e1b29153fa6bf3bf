# SPDX-License-Identifier: Apache-2.0
"""The systems that `run` compares: how each is started, and its settings."""
import copy
import grp
import os
import shutil
import subprocess


class Absent(Exception):
    """A rival that cannot be measured here, and why."""


class Rival:
    """A program that measures one system: its environment and how it is started."""

    def __init__(self, name, env=None, launchers=None, daemon=None, traces=(), program=None):
        self.name, self.env, self.launchers, self.daemon = name, env or {}, launchers or {}, daemon
        self.program = f"rival_{program or name}"
        self.traces = traces  # what it leaves behind when it is killed, as glob patterns

    def environment(self, setup):
        return self.env

    def commands(self, setup):
        program = setup.build / self.program
        if not program.exists():
            raise Absent(f"not built: no {program.name} in {setup.build}")
        measure = [str(program), *setup.program_options]
        if not self.launchers:
            return [measure]
        return [
            launcher() + measure + setup.options_of.get(ranks, [])
            for ranks, launcher in self.launchers.items()
            if ranks in setup.ranks and (ranks == 2 or "barrier" in setup.figures)
        ]


BARRIER_ALONE = {2: [], 4: ["--figures", "barrier", "--ranks", "4"]}


def by_itself():
    """A program that starts its ranks without a launcher."""
    return []


def launcher(family, programs, arguments):
    """The first of `programs` that is of this MPI family, called when it is needed."""

    def find():
        for program in filter(None, map(shutil.which, programs)):
            told = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if family.lower() in told.lower():
                return [program, *arguments]
        raise Absent(f"no launcher: none of {', '.join(programs)} is of {family}")

    return find


def mpich(ranks):
    return launcher("hydra", ["mpiexec.mpich", "mpiexec.hydra", "mpiexec"], ["-n", str(ranks)])


def openmpi(ranks):
    settings = ["--mca", "pml", "ob1", "--mca", "btl", "vader,self", "--bind-to", "none",
                "--mca", "btl_vader_single_copy_mechanism", "none"]
    crowded = ["--oversubscribe"] if ranks > 2 else []
    return launcher("open", ["mpirun.openmpi", "mpirun"], [*settings, *crowded, "-n", str(ranks)])


ROUDI_POOLS = """[general]
version = 1
[[segment]]
[[segment.mempool]]
size = 128
count = 256
[[segment.mempool]]
size = 1048640
count = 24
"""


def roudi(setup):
    """iceoryx's daemon with pools that fit the figures; it removes its segments when it ends."""
    program = shutil.which("iox-roudi")
    if not program:
        raise Absent("no iox-roudi (package iceoryx)")
    pools = setup.scratch / "roudi.toml"
    pools.write_text(ROUDI_POOLS)
    return [program, "-c", str(pools), "-l", "error"], "ready for clients"


ICEORYX_TRACES = ("/tmp/rivals-iceoryx-*", "/tmp/roudi", "/tmp/roudi.lock",
                  "/tmp/iox-unique-roudi.lock", "/dev/shm/iceoryx_mgmt",
                  "/dev/shm/" + grp.getgrgid(os.getgid()).gr_name)
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
OVER_UCX = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "posix,self"}
OURS = Rival("rmem", launchers={n: by_itself for n in (2, 4)}, traces=["/dev/shm/rmem*.rivals-*"])
RIVALS = [
    OURS,
    Rival("openmpi", AS_ROOT, {n: openmpi(n) for n in (2, 4)}),
    Rival("mpich", OVER_UCX, {n: mpich(n) for n in (2, 4)}),
    Rival("ucx", {"UCX_TLS": "posix,self"}),
    Rival("libfabric_shm", {"FI_SHM_DISABLE_CMA": "1"}, traces=["/dev/shm/*rivals-fabric-*"]),
    Rival("iceoryx", daemon=roudi, traces=ICEORYX_TRACES),
    Rival("boost_mq"),
    Rival("zeromq_ipc"),
    Rival("nanomsg_ipc"),
]
FLOOR = Rival("floor")

# --- over the network -----------------------------------------------------------------------------


def with_key(setup):
    """A key for our datagrams, which only its owner may read."""
    key = setup.scratch / "key"
    if not key.exists():
        key.touch(mode=0o600)
        key.write_text(os.urandom(32).hex())
    return {"RMEM_KEY_FILE": str(key)}


class Networked(Rival):
    """One whose environment depends on where the two ranks are."""

    def __init__(self, name, settings, **more):
        super().__init__(name, **more)
        self.settings = settings

    def environment(self, setup):
        return self.settings(setup)


def ours(setup, place=0):
    """Those that run at the same time have places of their own, and do not hear each other."""
    port = 30_000 + os.getpid() % 20_000 + place
    return {"RMEM_LINK": "udp", "RMEM_GROUP": f"239.1.2.3:{port}",
            "RMEM_INTERFACE": setup.interface}


def ours_over_tcp(setup, place=0, provider=""):
    """The same on link fabric, by its own choice or by that provider: nodes meet in a folder."""
    folder = setup.scratch / f"meeting-place-{place}"
    folder.mkdir(exist_ok=True)
    return {"RMEM_LINK": "fabric", "RMEM_PROVIDER": provider, "RMEM_GROUP": str(folder),
            "RMEM_INTERFACE": setup.interface}


def ours_over_tcp_without_key(setup, place=1, provider=""):
    if setup.lab:
        raise Absent("between hosts a key is required")
    return {**ours_over_tcp(setup, place, provider), "RMEM_KEY_FILE": ""}


def ours_without_key(setup):
    if setup.lab:
        raise Absent("between hosts a key is required")
    return {**ours(setup, place=1), "RMEM_KEY_FILE": ""}


def through_nodes(setup):
    """Each rank's node is the daemon `rmem node`, on the rank's own processor."""
    tool = setup.build / "../../tools/rmem"
    if not tool.exists():
        raise Absent(f"not built: no {tool}")
    return {**ours(setup), **with_key(setup), "RIVALS_NODE": str(tool)}


def through_nodes_on_other_cpus(setup):
    """The same, each daemon with a processor to itself, on which it never sleeps."""
    ranks = {int(n) for n in setup.cpus.split(",")}
    others = sorted(os.sched_getaffinity(0) - ranks)
    if len(others) < 2:
        raise Absent("two processors beside the ranks' are needed")
    return {**through_nodes(setup), "RIVALS_NODE_CPUS": f"{others[0]},{others[1]}"}


def mpich_over_tcp(setup):
    """No shared memory, and libfabric's tcp; its host name must not decide on the interface."""
    return {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": setup.interface, "UCX_TLS": "tcp,self",
            "UCX_NET_DEVICES": setup.interface}


CYCLONE = """<CycloneDDS><Domain>
<General><Interfaces><NetworkInterface name="{interface}" multicast="true"/></Interfaces>
<AllowMulticast>true</AllowMulticast></General>
<Internal><NackDelay>0 ms</NackDelay><PreEmptiveAckDelay>0 ms</PreEmptiveAckDelay>
<HeartbeatInterval min="1 ms" minsched="1 ms" max="10 ms">1 ms</HeartbeatInterval></Internal>
<Tracing><Verbosity>none</Verbosity></Tracing>
</Domain></CycloneDDS>"""


def cyclone(setup):
    return {"CYCLONEDDS_URI": CYCLONE.format(interface=setup.interface)}


class Family:
    """Systems that compare: the floor of all, and ours, which is one of the others."""

    def __init__(self, floor, ours, rivals, figures):
        self.floor, self.ours, self.rivals, self.figures = floor, ours, rivals, figures


def ours_over_network(name, settings):
    return Networked(name, settings, program="rmem", traces=["/dev/shm/rmem*.rivals-*"])


OVER_UDP = ours_over_network("rmem_udp", lambda setup: {**ours(setup), **with_key(setup)})
UDP_FLOOR, TCP = Rival("udp_floor"), Rival("tcp")
OVER_FABRIC = ours_over_network(
    "rmem_fabric", lambda setup: {**ours_over_tcp(setup), **with_key(setup)})
LIBFABRIC_TCP = Rival("libfabric_tcp")
FAMILIES = {
    "memory": Family(FLOOR, OURS, RIVALS, "pingpong,barrier,stream"),
    "udp": Family(UDP_FLOOR, OVER_UDP, [
        OVER_UDP,
        ours_over_network("rmem_udp_no_key", ours_without_key),
        ours_over_network("rmem_udp_node", through_nodes),
        ours_over_network("rmem_udp_node_cpu", through_nodes_on_other_cpus),
        Rival("norm"),
        Rival("openpgm"),
        Networked("cyclone", cyclone),
        Rival("zeromq_tcp"),
        Networked("mpich_tcp", mpich_over_tcp, launchers={2: mpich(2)}, program="mpich"),
    ], "pingpong,stream"),
    "fabric": Family(LIBFABRIC_TCP, OVER_FABRIC, [
        OVER_FABRIC,
        ours_over_network("rmem_fabric_no_key", ours_over_tcp_without_key),
        ours_over_network("rmem_fabric_tcp", lambda setup: {
            **ours_over_tcp(setup, 2, "tcp"), **with_key(setup)}),
        ours_over_network("rmem_fabric_tcp_no_key",
                          lambda setup: ours_over_tcp_without_key(setup, 3, "tcp")),
        Rival("libfabric_net"),
        Networked("mpich_tcp", mpich_over_tcp, launchers={2: mpich(2)}, program="mpich"),
    ], "pingpong,stream"),
}

# --- every size in every rhythm (`curves`) --------------------------------------------------------

BARE_RINGS = [Rival(f"bare_ring_{alignment}") for alignment in (16, 64)]
COPY, FUTEX, TACHYON = Rival("copy"), Rival("futex"), Rival("tachyon")
MOST_UDP_BYTES = 65_507  # of a datagram


class Curves:
    """Systems that compare at every size: ours, and in each rhythm the floors."""

    def __init__(self, ours, rivals, floors):
        self.ours, self.rivals, self.floors = ours, rivals, floors

    def floor_names(self):
        return list({f.name: 0 for floors in self.floors.values() for f in floors})


CURVES = {
    "memory": Curves(
        OURS, [TACHYON, *[r for r in RIVALS if r.name in
                          ("openmpi", "mpich", "ucx", "libfabric_shm", "boost_mq")]],
        {"pingpong": [FLOOR, *BARE_RINGS], "stream": [COPY, *BARE_RINGS],
         "window": [COPY, *BARE_RINGS], "burst": BARE_RINGS, "asleep": [FUTEX]}),
    "udp": Curves(
        OVER_UDP, [r for r in FAMILIES["udp"].rivals if r.name in
                   ("rmem_udp_no_key", "zeromq_tcp", "mpich_tcp")],
        {"pingpong": [UDP_FLOOR, TCP], "stream": [TCP], "window": [TCP], "burst": [TCP],
         "asleep": [TCP]}),
}
LAUNCHERS = {"mpich_tcp": mpich, "openmpi": openmpi, "mpich": mpich}


def with_ranks(rival, ranks):
    """The same, started in one way: with that number of ranks."""
    found = copy.copy(rival)
    if rival.launchers:
        found.launchers = {ranks: LAUNCHERS.get(rival.name, lambda _: by_itself)(ranks)}
    return found
