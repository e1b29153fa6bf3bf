# SPDX-License-Identifier: Apache-2.0
"""What is compared: for each suite its scenes, and what is asked of some figures."""
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Step:
    """One measurement: see tools/measure/rhythms.hpp."""
    rhythm: str
    bytes: int = 0
    count: int = 1
    more: float = 0

    def __str__(self):
        return f"{self.rhythm} {self.bytes} {self.count}"


@dataclass
class Scene:
    """Systems that take the same steps in turn; ratios are to the first."""
    name: str
    title: str
    systems: str
    steps: list
    ranks: tuple = (2,)
    usual: bool = True  # measured unless others are asked for
    notes: str = ""


@dataclass
class Suite:
    about: str
    scenes: list
    rounds: int = 5
    seconds: float = 0.2  # of each step of a system
    fresh: bool = True    # programs start in each round again: none keeps the fastest memory
    curves: bool = False  # told by size, with a column for each system
    targets: list = field(default_factory=list)
    alone: bool = False   # one system at a time, for crowds


@dataclass
class Target:
    """Asked of `ours` beside the best of `theirs`, within each round."""
    title: str
    scene: str
    rhythm: str
    ours: str
    theirs: tuple
    limit: float
    how: str = "time"  # time: ours / theirs; speed: theirs / ours; difference: ours - theirs


def both(rhythm, size, count, more=0):
    """Means of as many, free of the clock's cost; and one by one, for the tail."""
    return [Step(rhythm, size, count, more), Step(rhythm, size, 1, more)]


def steps_of(rhythms, sizes, count=20):
    return [Step(rhythm, size, count) for rhythm in rhythms for size in sizes]


# ---- Rivals, in figures of their usual sizes

MEMORY = ("rmem openmpi-vader mpich-ucx ucx libfabric_shm iceoryx boost_mq zeromq_ipc nanomsg_ipc")
NETWORK = ("rmem_udp rmem_udp_no_key rmem_udp_node zeromq_tcp mpich-ucx-tcp")
FABRIC = ("rmem_fabric rmem_fabric_no_key rmem_fabric_tcp rmem_fabric_tcp_no_key libfabric_net "
          "mpich-ucx-tcp")
RIVALS = Suite("other systems that carry messages between processes of one host", [
    Scene("pingpong", "8 bytes one way", MEMORY + " floor", both("pingpong", 8, 100)),
    Scene("barrier", "Barrier", MEMORY + " floor", both("barrier", 0, 100)),
    Scene("barrier-4", "Barrier of 4 ranks on two processors", "rmem openmpi-vader mpich-ucx",
          both("barrier", 0, 20), (4,)),
    Scene("stream", "Windows of 32 messages of 1 MiB", MEMORY + " copy", [
        Step("view", 1 << 20, 32), Step("stream", 1 << 20, 32)]),
])
UDP = Suite("systems that use the network: here, or in a lab of two hosts (--lab, --losses)", [
    Scene("pingpong", "8 bytes one way", NETWORK + " norm openpgm cyclone udp_floor",
          both("pingpong", 8, 20)),
    Scene("stream", "A stream of 1400 bytes", NETWORK + " udp_floor", [Step("stream", 1400, 500)]),
])
OVER_FABRIC = Suite("link fabric over TCP, beside libfabric alone", [
    Scene("pingpong", "8 bytes one way", FABRIC + " libfabric_tcp", both("pingpong", 8, 20)),
    Scene("stream", "A stream of 64 KiB", FABRIC + " libfabric_tcp", [Step("window", 65536, 64)]),
])

# ---- Every size in every rhythm

# Powers of two, and both sides of each threshold that a system here has.
SIZES = [0, 1, 2, 4, 8, 16, 24, 27, 28, 29, 32, 40, 48, 55, 56, 57, 60, 61, 62, 63, 64, 65, 96, 112,
         113, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 16384, 32768, 65536,
         131072, 262144, 524288, 1048576]


def fitting(size):
    return max(16, min(1000, (1 << 22) // max(size, 1)))


def curves(systems, floors, pingpong_floors, asleep_floor, sizes):
    pair = f"{systems} {{}}"
    return [
        Scene("pingpong", "pingpong", pair.format(pingpong_floors),
              [Step("pingpong", s, 20 if s <= 4096 else 2) for s in sizes]),
        Scene("stream", "stream", pair.format(floors),
              [Step("stream", s, fitting(s)) for s in sizes]),
        Scene("window", "window of 64", pair.format(floors), steps_of(["window"], sizes, 64)),
        *(Scene(f"burst-{n}", f"burst of {n}", pair.format(floors.replace("copy ", "")),
                steps_of(["burst"], [s for s in sizes if s <= 4096], n)) for n in (2, 8, 64)),
        Scene("asleep", "asleep", pair.format(asleep_floor),
              steps_of(["asleep"], (8, 64, 1024), 1)),
    ]


MANY = "rmem openmpi-vader mpich-ucx"
RINGS = "bare_ring_16 bare_ring_64"
CURVES = Suite("every size in every rhythm", [
    *curves("rmem tachyon openmpi-vader mpich-ucx ucx libfabric_shm boost_mq", f"copy {RINGS}",
            f"floor {RINGS}", "futex", SIZES),
    Scene("fan_in", "fan in", MANY, [Step("fan_in", s, fitting(s)) for s in SIZES], (4,), False),
    Scene("fan_out", "fan out", MANY, [Step("fan_out", s, min(fitting(s), 100)) for s in SIZES],
          (4,), False),
    Scene("all_to_all", "all to all", MANY, steps_of(["all_to_all"], SIZES, 1), (4,), False),
], 15, 0.006, False, True)
CURVES_UDP = Suite("the same over the network: here, or in a lab of two hosts (--lab)", curves(
    "rmem_udp rmem_udp_no_key zeromq_tcp mpich-ucx-tcp", "tcp", "udp_floor tcp", "tcp",
    sorted([*SIZES, 1400])),
    15, 0.006, False, True)

# ---- The ports, beside the billboard that they use

PAPERS = ("Papers: MB of 2^20 for FM, of 10^6 for GAMMA and Directed Point.")
PORTS_4 = ("fm4", "fm2", "gamma", "dp")


def on_link(link, names):
    return " ".join([{"direct": "rmem", "ring": "rmem_ring", "udp": "rmem_udp_no_key"}[link],
                     *(n if link == "direct" else f"{n}_{link}" for n in names)])


def to_and_fro(link, count):
    """Bare, and with work of 65 ns on average between receiving and answering."""
    beside = ("gamma_beside", "dp_beside")
    return Scene("latency" if link == "direct" else f"latency-{link}",
                 f"One way of small messages, link {link}", on_link(link, PORTS_4 + beside),
                 [Step("pingpong", 8, count), Step("pingpong", 8, count, 65)],
                 notes="`more`: ns of work before each answer, measured alone and subtracted; "
                       "beside: bbp_send in a process that has the port.")


CURVE = [8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192, 16384]


def window(size, within=131072, least=8):
    """As many as fit into a receiver's buffers twice, whichever the port."""
    return max(least, min(500, within // size))


PORTS = Suite("the ports beside the billboard", [
    to_and_fro("direct", 500), to_and_fro("ring", 100), to_and_fro("udp", 100),
    Scene("gap", "From message to message", on_link("direct", PORTS_4), [Step("stream", 8, 500)],
          notes="Of 500, until the last has been received and answered."),
    Scene("bandwidth", "n½, t0, r∞", on_link("direct", ("fm1", "fm2", "gamma", "dp")), [
        step for s in CURVE for step in (Step("stream", s, window(s)), Step("pingpong", s, 20))],
        notes="r∞: slope of the line through the time of a message over its size (relative least "
              "squares). n½: the size at which the measured bandwidth reaches half of that. t0: "
              "where the line through the one-way times meets 0 bytes. " + PAPERS),
    Scene("udp-share", "Bandwidth over udp", "udp_floor rmem_udp_no_key gamma_udp dp_pool_udp", [
        Step("stream", s, window(s, 700_000, 16)) for s in (512, 1400, 8192)],
        notes="The first is bare datagrams, in the same windows, none lost. "
              "Papers: GAMMA 0.98, Directed Point 0.636 to 0.97."),
    Scene("barrier", "Barrier", "floor rmem gamma", both("barrier", 0, 500)),
    *(Scene(f"handlers-{fm}", f"Many handlers, {fm}", f"{fm} {fm}_handlers",
            [Step("stream", 16, 1000)], notes="To one handler; to 1000 in random order.")
      for fm in ("fm4", "fm2")),
    Scene("both-ways", "Both ways at once", "rmem dp", [
        step for s in (8, 1500, 4096)
        for step in (Step("stream", s, window(s)), Step("both", s, 4 * window(s), 8),
                     Step("both", s, 4 * window(s), 32))],
        notes="`more`: sent before as many have been received. Share: of the bandwidth of one way "
              "that each direction has. Paper: 0.73 on Gigabit, 1.0 on Fast Ethernet."),
    Scene("munet", "MU-Net", "relay munet munet_2 munet_6 munet_14 munet_dma",
          [Step("relay", 8, 1000), Step("call", 65536)],
          notes="By way of a daemon on another processor, with 0, 2, 6 and 14 further endpoints; "
                "the first: a bare relay over two cache lines, and a memcpy to where another "
                "processor has read."),
    Scene("flow", "FM 1.0: return-to-sender and windows", "returned same_memory own_windows",
          [Step("fan_in", 16, 2000), Step("fan_in", 16, 2000, 1)], (2, 3, 5),
          notes="`more` of 1: one of the senders alone. returned: frames that went back."),
    Scene("instructions", "Instructions of a message",
          "rmem fm4 fm1 fm2 gamma dp", [Step("turns", 16, 1000, 1)],
          notes="Of one message that nobody waits for, with all that the call does; the mean of "
                "the two ranks. From callgrind, so whatever else the machine does."),
], 15, 0.1, targets=[
    *(Target("one way ÷ bbp_send", "latency", "pingpong", p, ("rmem",), 1.4) for p in PORTS_4),
    *(Target("from message to message ÷ bbp_send", "gap", "stream", p, ("rmem",), 1.5)
      for p in ("fm4", "fm2", "gamma")),
    *(Target("share of bare datagrams", "udp-share", "stream", p, ("udp_floor",), 0.85, "speed")
      for p in ("gamma_udp", "dp_pool_udp")),
    Target("a message ÷ a bare relay", "munet", "relay", "munet", ("relay",), 1.3),
    Target("mu_send_DMA ÷ a copy", "munet", "call", "munet_dma", ("relay",), 1.2),
])

# ---- MPI over the ring, beside what the MPIs have themselves

NATIVE = "openmpi-vader mpich-shm mpich-ucx"
BBP = "openmpi-bbp mpich-bbp"
PLAIN = f"{BBP} openmpi-bbp-plain mpich-bbp-plain {NATIVE}"
LIBFABRIC = "openmpi-tcp openmpi-net openmpi-sockets mpich-fi-shm mpich-tcp"
SMALL = (8, 64, 256, 1024)


def collectives(ranks):
    return Scene(f"collectives-{ranks}", f"Barrier and broadcast of {ranks}", PLAIN,
                 [Step("barrier", 0, 100), *steps_of(["bcast"], SMALL, 100),
                  *steps_of(["bcast_osu"], SMALL, 20)], (ranks,))


def reductions(ranks):
    return Scene(f"reductions-{ranks}", f"Reductions of {ranks}", PLAIN,
                 steps_of(["allreduce", "reduce", "allgather"], SMALL, 100), (ranks,), False)


def large(name, sizes, systems, usual=True):
    """A window that is read in place of the receiver, and to and fro."""
    return Scene(name, f"Large messages ({name})", systems, [
        step for s in sizes for step in (Step("view", s, max(2, min(32, (32 << 20) // s))),
                                         Step("pingpong", s, 1))], usual=usual)


PAIRS = (("openmpi", ("openmpi-vader",)), ("mpich", ("mpich-shm", "mpich-ucx")))
MPI = Suite("MPI over the ring, beside what the MPIs have themselves", [
    Scene("latency", "8 bytes one way", f"rmem floor openmpi-null mpich-null {BBP} {NATIVE} "
          + LIBFABRIC, both("pingpong", 8, 100)),
    Scene("rate", "Messages of 64 at once", f"{BBP} {NATIVE}", steps_of(["window"], (8, 1024), 64)),
    large("bandwidth", [1 << 20], f"{BBP} {NATIVE}"),
    collectives(2), collectives(4),
    Scene("udp", "8 bytes one way over udp", "openmpi-bbp-udp openmpi-tcp mpich-bbp-udp mpich-tcp",
          both("pingpong", 8, 20)),
    large("bulk", [131072, 1 << 20, 1 << 24], "openmpi-bbp-udp openmpi-bbp-udp-bulk "
          "openmpi-bbp-fabric openmpi-bbp-fabric-bulk openmpi-tcp mpich-bbp-udp-bulk "
          "mpich-bbp-fabric-bulk mpich-tcp", False),
    Scene("crowd", "Sums of eight numbers, 8 ranks", f"{BBP} {NATIVE}",
          steps_of(["reduce_loop", "allreduce"], (64,), 100), (8,)),
    Scene("fm", "Through Fast Messages", f"rmem {BBP} openmpi-bbp-fm mpich-bbp-fm",
          steps_of(["pingpong"], (8, 1024, 65536)), usual=False),
    Scene("sizes", "One way of all sizes", f"{BBP} {NATIVE}",
          steps_of(["pingpong"], (0, 1, 8, 64, 256, 1024, 4096, 16384, 65536)), usual=False),
    large("large", [65536, 1 << 20, 1 << 24, 1 << 26], f"{BBP} {NATIVE}", False),
    reductions(2), reductions(4),
], targets=[target for mpi, native in PAIRS for target in (
    Target("8 B one way - billboard", "latency", "pingpong", f"{mpi}-bbp", ("rmem",), 150,
           "difference"),
    Target("8 B one way ÷ MPICH's shared memory", "latency", "pingpong", f"{mpi}-bbp",
           ("mpich-shm", "mpich-ucx"), 1.0),
    Target("8 B one way ÷ Open MPI's vader", "latency", "pingpong", f"{mpi}-bbp",
           ("openmpi-vader",), 1.2),
    Target("8 B one way ÷ best provider of libfabric", "latency", "pingpong", f"{mpi}-bbp",
           tuple(LIBFABRIC.split()), 0.5),
    Target("a message of 64 at once ÷ native", "rate", "window", f"{mpi}-bbp", native, 1.0),
    *(Target(f"1 MiB bandwidth ÷ MPICH's, {rhythm}", "bandwidth", rhythm, f"{mpi}-bbp",
             ("mpich-shm", "mpich-ucx"), 1.0, "speed") for rhythm in ("view", "pingpong")),
    *(Target(f"{rhythm}, {ranks} ranks ÷ {name}", f"collectives-{ranks}", rhythm, f"{mpi}-bbp",
             theirs, limit) for ranks in (2, 4) for rhythm in ("barrier", "bcast", "bcast_osu")
      for name, theirs, limit in (("point to point", (f"{mpi}-bbp-plain",), 0.6),
                                  ("native", native, 1.0))),
    Target("udp: 8 B one way ÷ MPI over tcp;ofi_rxm", "udp", "pingpong", f"{mpi}-bbp-udp",
           (f"{mpi}-tcp",), 0.6),
    *(Target(f"8 ranks, {rhythm} ÷ native", "crowd", rhythm, f"{mpi}-bbp", native, 1.5)
      for rhythm in ("reduce_loop", "allreduce")))])

# ---- Our own

BARRIERS = Suite("the two barriers, arrival and paper", [
    Scene(link, f"Barriers, {link}", f"paper_{link} arrival_{link}", [Step("barrier", 0, 10)],
          (2, 4, 16, 64, 128, 256), link == "direct")
    for link in ("direct", "ring", "ring_scramnet")], alone=True)
CROWD = Suite("more ranks than processors: start, broadcast with all answers, barrier, 8 bytes "
              "one way while the others sleep", [
                  Scene("crowd", "Crowd", "rmem rmem_ring rmem_ring_scramnet rmem_ring_gt200 "
                        "rmem_udp_no_key", [Step("start"), Step("fan_out", 4), Step("barrier"),
                                            Step("pingpong", 8, 500)], (2, 16))],
              alone=True)
LATENESS = Suite("how late the ring link runs, by the wire model", [
    Scene("lateness", "Lateness", "words_ring_scramnet",
          [Step("pingpong", 4, 1), Step("pingpong", 4, 20, 2000)],
          notes="Words to and fro; with 2 µs of work before each answer. Nothing may come before "
                "the wire could have carried it: min is at least the floor.")], 1, 2.0)
BRIDGE = Suite("what a bridge adds between two rings", [
    Scene("bridge", "Bridge", "words_ring words_udp bridge_ring_ring bridge_udp_ring "
          "bridge_udp_udp", [Step("pingpong", 4, 1), Step("relay", 4, 1)],
          notes="The first two: one way of a word within each ring.")])
SHOWN = "pingpong", (8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)
PICTURES = Suite("what docs/measurements/pictures shows", [
    Scene("systems", "8 bytes one way", "floor " + MEMORY, both("pingpong", 8, 100)),
    Scene("sizes", "One way against the size", "inline paper openmpi-vader mpich-ucx",
          steps_of([SHOWN[0]], SHOWN[1])),
], 3)

SUITES = {"rivals": RIVALS, "udp": UDP, "fabric": OVER_FABRIC, "curves": CURVES,
          "curves-udp": CURVES_UDP, "ports": PORTS, "mpi": MPI, "barriers": BARRIERS,
          "crowd": CROWD, "lateness": LATENESS, "bridge": BRIDGE, "pictures": PICTURES}
