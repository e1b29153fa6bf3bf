# SPDX-License-Identifier: Apache-2.0
"""The systems that can be compared: how each is started, with which settings."""
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import partial


class Absent(Exception):
    """A system that cannot be measured here, and why."""


def program(*names):
    for name in names:
        if found := shutil.which(name):
            return found
    raise Absent(f"there is no {' or '.join(names)}")


def present(path, what):
    if not path.exists():
        raise Absent(f"there is no {what} ({path})")
    return str(path)


@dataclass
class System:
    """A program bench-… of the build, and its settings."""
    name: str
    program: str
    variant: str = ""
    settings: object = field(default_factory=dict)  # the environment, or setup -> environment
    launcher: object = None  # (setup, ranks) -> what starts its ranks; None: it does so itself
    daemons: object = None   # setup -> [(command, what it says when it is ready)]
    traces: tuple = ()       # what it leaves behind when it is killed, as glob patterns
    proof: object = None     # each rank says this, or the messages did not go where they should
    least: int = 0           # of a message, in bytes; shorter ones are measured as that
    most: int = 1 << 20
    rhythms: str = ""        # it takes only these, and nobody else does
    ranks: int = 0           # always as many

    def environment(self, setup):
        settings = self.settings(setup) if callable(self.settings) else self.settings
        return {"BENCH_VARIANT": self.variant, **settings}

    def command(self, setup, ranks):
        own = [present(setup.build / f"bench/bench-{self.program}", "program; build all_benches")]
        return (self.launcher(setup, ranks) if self.launcher else []) + own


# ---- Our own


def with_key(setup):
    """A key for our datagrams, which only its owner may read."""
    key = setup.scratch / "key"
    if not key.exists():
        key.touch(mode=0o600)
        key.write_text(os.urandom(32).hex())
    return {"RMEM_KEY_FILE": str(key)}


def on(link, key=False, **more):
    """On that link; rings that are there at the same time have places of their own."""

    def settings(setup):
        found = {"RMEM_LINK": link, "RMEM_INTERFACE": setup.interface, **more}
        place = setup.place((link, key, *more.items()))
        if link == "udp":
            found["RMEM_GROUP"] = f"239.1.2.3:{30_000 + os.getpid() % 20_000 + place}"
        if link == "fabric":
            folder = setup.scratch / f"meeting-place-{place}"
            folder.mkdir(exist_ok=True)
            found["RMEM_GROUP"] = str(folder)
        if setup.lab and not key:
            raise Absent("between hosts a key is required")
        return {**found, **(with_key(setup) if key else {})}
    return settings


OWN_TRACES = ("/dev/shm/rmem*bench-{pid}*", f"/dev/shm/rmem*bench-{os.getpid()}-*")


def ours(name, settings, **more):
    return System(name, "rmem", settings=settings, traces=OWN_TRACES, **more)


NODES_RING = f"bench-{os.getpid()}-nodes"


def nodes(setup):
    """Each rank's node is the daemon `rmem node`, on the rank's own processor."""
    tool = present(setup.build / "tools/rmem", "command")
    for node in (0, 1):
        where = ["nsenter", f"--net=/run/netns/{setup.lab.spaces[node]}"] if setup.lab else []
        yield [*where, "taskset", "-c", setup.cpus[node], tool, "node", "--ring", NODES_RING,
               "--node", str(node), "--nodes", "2"], "in ring"


def bridged(first, second):
    """Two rings, and `rmem bridge` between them."""
    ring = f"bench-{os.getpid()}-{first}-{second}"

    def settings(setup):
        return {**on("udp", BENCH_FROM=first, BENCH_TO=second)(setup), "BENCH_RING": ring}

    def daemons(setup):
        group = settings(setup)["RMEM_GROUP"]

        def end(side, link):
            return {"RMEM_RING": f"{ring}-{side}", "RMEM_LINK": link, "RMEM_NODE": "1",
                    "RMEM_NODES": "2", "RMEM_SIZE": "65536", "RMEM_GROUP": group,
                    "table": 65536 - 3 * 4096}
        region = {"name": "x", "from": "a", "offset": 0, "to": "b", "at": 0, "bytes": 4096}
        file = setup.scratch / f"{ring}.json"
        file.write_text(str({"rings": {"a": end("a", first), "b": end("b", second)},
                             "regions": [region]}).replace("'", '"'))
        yield [present(setup.build / "tools/rmem", "command"), "bridge", "--spin", str(file)], \
            "forwards"
    return System(f"bridge_{first}_{second}", "words", "bridged", settings, daemons=daemons,
                  rhythms="relay", ranks=1, traces=OWN_TRACES)


def port(variant, link="direct", **more):
    name = variant if link == "direct" else f"{variant}_{link}"
    return System(name, "ports", variant, on(link), traces=OWN_TRACES, **more)


LIMITS = {"fm4": {"least": 16, "most": 16}, "fm1": {"least": 16, "most": 128},
          "fm2": {"least": 16}, "gamma": {}, "dp": {}, "fm4_handlers": {"least": 16, "most": 16},
          "fm2_handlers": {"least": 16}, "gamma_beside": {}, "dp_beside": {}}
PORTS = [port(variant, link, **LIMITS[variant]) for link in ("direct", "ring", "udp")
         for variant in LIMITS]
TIMINGS = {"": "none", "_scramnet": "scramnet-burst", "_gt200": "gt200"}
OURS = [
    ours("rmem", on("direct")),
    ours("rmem_udp", on("udp", key=True)),
    ours("rmem_udp_no_key", on("udp")),
    ours("rmem_udp_node", on("udp", key=True, BENCH_RING=NODES_RING), daemons=nodes),
    *(ours(f"rmem_fabric{way}{'' if key else '_no_key'}", on("fabric", key, RMEM_PROVIDER=provider))
      for way, provider in (("", ""), ("_tcp", "tcp")) for key in (True, False)),
    *(ours(f"rmem_ring{name}", on("ring", RMEM_TIMING=timing)) for name, timing in TIMINGS.items()),
    *(ours(f"{kind}_{link}{name}", on(link, RMEM_BARRIER=kind, RMEM_TIMING=timing))
      for kind in ("arrival", "paper") for link, name, timing in (
          ("direct", "", ""), ("ring", "", "none"), ("ring", "_scramnet", "scramnet-burst"))),
    *(ours(layout, on("direct", RMEM_LAYOUT=layout, RMEM_PARTITION="4M"))  # its answer fits, too
      for layout in ("inline", "paper")),
    System("words_ring", "words", settings=on("ring", RMEM_TIMING="none")),
    System("words_ring_scramnet", "words", settings=on("ring", RMEM_TIMING="scramnet-burst")),
    System("words_udp", "words", settings=on("udp")),
    *(bridged(a, b) for a, b in (("ring", "ring"), ("udp", "ring"), ("udp", "udp"))),
    *PORTS, port("dp_pool", "udp"),
    *(System(way, "fm-windows", way, on("direct"), rhythms="fan_in")
      for way in ("returned", "same_memory", "own_windows")),
    System("relay", "munet", "relay", rhythms="relay call"),
    *(System(name, "munet", name, rhythms="relay") for name in ("munet", "munet_2", "munet_6",
                                                                "munet_14")),
    System("munet_dma", "munet", "munet_dma", rhythms="call"),
]
FLOORS = [
    System("floor", "floors", "line", rhythms="pingpong barrier", ranks=2),
    System("copy", "floors", "copy", rhythms="stream window"),
    System("futex", "floors", "futex", rhythms="asleep"), System("bare_ring_16", "bare-ring", "16"),
    System("bare_ring_64", "bare-ring", "64"),
    System("udp_floor", "datagrams", most=65_507), System("tcp", "tcp"),
]

# ---- Rivals

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
    """iceoryx's daemon with pools that fit; it removes its segments when it ends."""
    pools = setup.scratch / "roudi.toml"
    pools.write_text(ROUDI_POOLS)
    yield [program("iox-roudi"), "-c", str(pools), "-l", "error"], "ready for clients"


CYCLONE = """<CycloneDDS><Domain>
<General><Interfaces><NetworkInterface name="{interface}" multicast="true"/></Interfaces>
<AllowMulticast>true</AllowMulticast></General>
<Internal><NackDelay>0 ms</NackDelay><PreEmptiveAckDelay>0 ms</PreEmptiveAckDelay>
<HeartbeatInterval min="1 ms" minsched="1 ms" max="10 ms">1 ms</HeartbeatInterval></Internal>
<Tracing><Verbosity>none</Verbosity></Tracing>
</Domain></CycloneDDS>"""
RIVALS = [
    System("ucx", "ucx", settings={"UCX_TLS": "posix,self"}),
    System("libfabric_shm", "libfabric", "shm", {"FI_SHM_DISABLE_CMA": "1"},
           traces=("/dev/shm/*bench-fabric-*-{pid}",)),
    System("libfabric_tcp", "libfabric", "tcp"),
    System("libfabric_net", "libfabric", "net"),
    System("iceoryx", "iceoryx", daemons=roudi, traces=("/tmp/bench-iceoryx-*",)),
    System("boost_mq", "boost-mq"),
    System("zeromq_ipc", "zeromq", "ipc"),
    System("zeromq_tcp", "zeromq", "tcp"),
    System("nanomsg_ipc", "nanomsg"),
    System("tachyon", "tachyon", least=1),
    System("norm", "norm"),
    System("openpgm", "openpgm"),
    System("cyclone", "cyclone",
           settings=lambda setup: {"CYCLONEDDS_URI": CYCLONE.format(interface=setup.interface)}),
]

# ---- MPIs: what each sends through

OVER_RING = re.compile(r"rank \d+: [1-9]\d* packets sent")
BY_FM = re.compile(r"rank \d+: by Fast Messages, which has counted [1-9]")
PAST_IT = re.compile(r"rank \d+: .* [1-9]\d* of these through the fabric")
PAST_RING = {"RMEM_BULK": "fabric"}  # long messages
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
VADER = ("--mca", "pml", "ob1", "--mca", "btl", "vader,self", "--mca",
         "btl_vader_single_copy_mechanism", "none")


def openmpi_options(setup, ranks):
    crowded = ["--oversubscribe"] if ranks > len(set(setup.cpus)) else []
    return ["--bind-to", "none", *crowded, "-n", str(ranks)]


def through_openmpi(*settings):
    return lambda setup, ranks: [program("mpirun.openmpi"), *settings,
                                 *openmpi_options(setup, ranks)]


def through_fabric(provider, *settings):
    return through_openmpi("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca",
                           "mtl_ofi_provider_include", provider, *settings)


def through_mpich(_, ranks):
    for found in filter(None, map(shutil.which, ("mpiexec.mpich", "mpiexec.hydra", "mpiexec"))):
        told = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
        if "hydra" in told.lower():
            return [found, "-n", str(ranks)]
    raise Absent("there is no mpiexec of MPICH's")


def ofi_mpich(setup):
    """The MPICH that sends through libfabric: Debian's does not."""
    return present(setup.mpich / "libmpich.so.12", "MPICH built for libfabric")


def fabric_mpich(setup, ranks):
    ofi_mpich(setup)
    return through_mpich(setup, ranks)


def over_ring(mpi):
    def launcher(setup, ranks):
        present(setup.build / "mpi_channel/libbbp-fi.so", "provider bbp")
        if mpi == "mpich":
            ofi_mpich(setup)
        options = openmpi_options(setup, ranks) if mpi == "openmpi" else ["-n", str(ranks)]
        return [present(setup.root / f"mpi_channel/mpirun-bbp-{mpi}", "launcher"), *options]
    return launcher


def ring_settings(name, link="direct", **more):
    ring = f"bench-{name}-{os.getpid()}"

    def settings(setup):
        return {**AS_ROOT, **on(link, RMEM_RING=ring, **more)(setup),
                "FI_PROVIDER_PATH": str(setup.build / "mpi_channel"),
                "RMEM_MPICH": str(setup.mpich), "FI_LOG_LEVEL": "info", "FI_LOG_PROV": "bbp",
                "PATH": f"{setup.build / 'tools'}:{os.environ.get('PATH', '')}"}
    return settings


def without_provider(setup, mpi="openmpi"):
    """Its mailbox is one cache line of zeros, a new one for each run."""
    present(setup.build / "bench/libnull-fi.so", "provider that does nothing")
    mailbox = setup.scratch / f"mailbox-{mpi}"
    mailbox.unlink(missing_ok=True)
    mailbox.write_bytes(bytes(64))
    return {**AS_ROOT, "FI_PROVIDER_PATH": str(setup.build / "bench"),
            "NULL_FI_MAILBOX": str(mailbox)}


def mpich_on_fabric(base, provider):
    """MPICH's libraries, with libfabric's provider between the ranks of one host, too."""
    return lambda setup: {**(base(setup) if callable(base) else base), "FI_PROVIDER": provider,
                          "LD_LIBRARY_PATH": str(setup.mpich), "MPIR_CVAR_NOLOCAL": "1"}


def mpich_over_tcp(setup):
    """No shared memory; its host name must not decide on the interface."""
    return {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": setup.interface}


def ring_mpi(mpi, name="", proof=OVER_RING, **settings):
    name = f"{mpi}-bbp{name}"
    return System(name, mpi, "", ring_settings(name, **settings), over_ring(mpi),
                  traces=(f"/dev/shm/*bench-{name}-{os.getpid()}*",), proof=proof, most=1 << 26)


LOOPBACK = {**AS_ROOT, "FI_TCP_IFACE": "lo"}
OPENMPI = partial(System, program="openmpi", most=1 << 26)
MPICH = partial(System, program="mpich", most=1 << 26)
MPIS = [
    OPENMPI("openmpi-vader", settings=AS_ROOT, launcher=through_openmpi(*VADER)),
    MPICH("mpich-shm", launcher=through_mpich),
    MPICH("mpich-ucx", settings={"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "posix,self"},
          launcher=through_mpich),
    MPICH("mpich-ucx-tcp", settings=mpich_over_tcp, launcher=through_mpich),
    OPENMPI("openmpi-null", settings=without_provider, launcher=through_fabric("null"), most=8),
    MPICH("mpich-null", settings=mpich_on_fabric(
        partial(without_provider, mpi="mpich"), "null"), launcher=fabric_mpich,
          most=8),
    OPENMPI("openmpi-tcp", settings=LOOPBACK, launcher=through_fabric("tcp;ofi_rxm")),
    OPENMPI("openmpi-net", settings=LOOPBACK, launcher=through_fabric("net")),
    # By its own choice each has a thread for progress, which finds no processor among ranks that
    # poll: milliseconds.
    OPENMPI("openmpi-sockets", settings=AS_ROOT,
            launcher=through_fabric("sockets", "--mca", "mtl_ofi_data_progress", "manual")),
    MPICH("mpich-fi-shm", settings=mpich_on_fabric({}, "shm"), launcher=fabric_mpich),
    MPICH("mpich-tcp", settings=mpich_on_fabric(LOOPBACK, "tcp;ofi_rxm"), launcher=fabric_mpich),
    *(made for mpi in ("openmpi", "mpich") for made in (
        ring_mpi(mpi), ring_mpi(mpi, "-plain", RMEM_MPI="collectives=off"),
        ring_mpi(mpi, "-fm", BY_FM, RMEM_MPI="transport=fm"),
        *(ring_mpi(mpi, f"-{link}{name}", proof, link=link, **bulk) for link in ("udp", "fabric")
          for name, proof, bulk in (("", OVER_RING, {}), ("-bulk", PAST_IT, PAST_RING))))),
]
SYSTEMS = {system.name: system for system in [*OURS, *FLOORS, *RIVALS, *MPIS]}
