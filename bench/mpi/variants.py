# SPDX-License-Identifier: Apache-2.0
"""What `run` compares.

The ways below an MPI, how each is started, and what is measured over which of them.
"""
import glob
import os
import re
import shutil
from dataclasses import dataclass

OVER_RING = re.compile(r"rank \d+: [1-9]\d* packets sent")
BY_FM = re.compile(r"rank \d+: by Fast Messages, which has counted [1-9]")
PAST_IT = re.compile(r"rank \d+: .* [1-9]\d* of these through the fabric")
PAST_RING = {"RMEM_BULK": "fabric"}  # messages of more than 64 KiB
PLAIN_COLLECTIVES = {"RMEM_MPI_COLLECTIVES": "off"}  # of the same device, point to point
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Absent(Exception):
    """A variant that cannot be measured here, and why."""


def program(*names):
    for name in names:
        if found := shutil.which(name):
            return found
    raise Absent(f"there is no {' or '.join(names)}")


def present(path, what):
    if not path.exists():
        raise Absent(f"there is no {what} ({path})")
    return str(path)


# ---- Ways to start ranks


def through_openmpi(*settings):
    def command(setup, ranks):
        crowded = ["--oversubscribe"] if ranks > len(setup.cpus) else []
        return [program("mpirun.openmpi"), *settings, "--bind-to", "none", *crowded,
                "-n", str(ranks)]
    return command


def through_fabric(provider, *settings):
    return through_openmpi("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca",
                           "mtl_ofi_provider_include", provider, *settings)


def through_mpich(_, ranks):
    return [program("mpiexec.mpich"), "-n", str(ranks)]


def ring_openmpi(setup, ranks):
    present(setup.provider / "libbbp-fi.so", "provider bbp")
    crowded = ["--oversubscribe"] if ranks > len(setup.cpus) else []
    program("mpirun.openmpi")
    return [present(setup.root / "mpi_channel/mpirun-bbp-openmpi", "launcher"), "--bind-to", "none",
            *crowded, "-n", str(ranks)]


def ring_mpich(setup, ranks):
    present(setup.provider / "libbbp-fi.so", "provider bbp")
    ofi_mpich(setup)
    launcher = present(setup.root / "mpi_channel/mpirun-bbp-mpich", "launcher for MPICH")
    return [launcher, "-n", str(ranks)]


def fabric_mpich(setup, ranks):
    ofi_mpich(setup)
    return through_mpich(setup, ranks)


# ---- Environments


def ofi_mpich(setup):
    """The MPICH that sends through libfabric: Debian's does not."""
    return present(setup.mpich / "libmpich.so.12", "MPICH built for libfabric")


def on_ring(**more):
    def environment(setup):
        return {**AS_ROOT, "RMEM_RING": setup.ring, "RMEM_PROVIDER_PATH": str(setup.provider),
                "RMEM_MPICH": str(setup.mpich), "FI_LOG_LEVEL": "info", "FI_LOG_PROV": "bbp",
                **more}
    return environment


def over_udp(**more):
    def environment(setup):
        group = f"239.1.2.3:{setup.port}"
        return on_ring(RMEM_LINK="udp", RMEM_INTERFACE="lo", RMEM_GROUP=group, **more)(setup)
    return environment


def over_fabric(**more):
    def environment(setup):
        meeting_place = setup.scratch / "meet"
        meeting_place.mkdir(exist_ok=True)
        return on_ring(RMEM_LINK="fabric", RMEM_INTERFACE="lo",
                       RMEM_GROUP=str(meeting_place), **more)(setup)
    return environment


def without_provider(setup):
    """Its mailbox is one cache line of zeros, a new one for each run."""
    present(setup.build / "bench/mpi/libnull-fi.so", "provider that does nothing")
    mailbox = setup.scratch / "mailbox"
    mailbox.write_bytes(bytes(64))
    return {**AS_ROOT, "FI_PROVIDER_PATH": str(setup.build / "bench/mpi"),
            "NULL_FI_MAILBOX": str(mailbox)}


def environment(**settings):
    return lambda _: {**AS_ROOT, **settings}


def on_fabric(base, provider):
    """MPICH's libraries, with libfabric's provider between the ranks of one host, too."""
    def made(setup):
        return {**base(setup), "LD_LIBRARY_PATH": str(setup.mpich), "FI_PROVIDER": provider,
                "MPIR_CVAR_NOLOCAL": "1"}
    return made


# ---- The variants


@dataclass
class Variant:
    name: str
    mpi: str  # whose program: openmpi, mpich; or none: rmem's own bench
    command: object = None  # (setup, ranks) -> what stands before the program
    environment: object = environment()
    proof: object = None  # each rank says this, or the message did not go where it should

    def start(self, setup, ranks, arguments):
        if self.mpi == "none":
            return [present(setup.build / "tools/rmem", "tool rmem"), "bench", "pingpong", "--json",
                    "--processors", *setup.cpus, "--samples", "20000",
                    "--rounds", setup.bench_rounds]
        figures = present(setup.build / f"bench/mpi/mpi-figures-{self.mpi}",
                          f"program for {self.mpi}")
        return [*self.command(setup, ranks), figures, *arguments]


LOOPBACK = {"FI_TCP_IFACE": "lo"}
VADER = ("--mca", "pml", "ob1", "--mca", "btl", "vader,self", "--mca",
         "btl_vader_single_copy_mechanism", "none")
VARIANTS = [
    Variant("billboard", "none"),
    Variant("openmpi-null", "openmpi", through_fabric("null"), without_provider),
    Variant("openmpi-bbp", "openmpi", ring_openmpi, on_ring(), OVER_RING),
    Variant("openmpi-bbp-plain", "openmpi", ring_openmpi, on_ring(**PLAIN_COLLECTIVES), OVER_RING),
    *(Variant(f"{mpi}-bbp-fm", mpi, ring, on_ring(RMEM_MPI_TRANSPORT="fm"), BY_FM)
      for mpi, ring in (("openmpi", ring_openmpi), ("mpich", ring_mpich))),
    Variant("openmpi-vader", "openmpi", through_openmpi(*VADER)),
    Variant("openmpi-tcp", "openmpi", through_fabric("tcp;ofi_rxm"), environment(**LOOPBACK)),
    Variant("openmpi-net", "openmpi", through_fabric("net"), environment(**LOOPBACK)),
    # By its own choice each has a thread for progress, which finds no processor among ranks that
    # poll: milliseconds.
    Variant("openmpi-sockets", "openmpi",
            through_fabric("sockets", "--mca", "mtl_ofi_data_progress", "manual")),
    Variant("mpich-null", "mpich", fabric_mpich, on_fabric(without_provider, "null")),
    Variant("mpich-bbp", "mpich", ring_mpich, on_ring(), OVER_RING),
    Variant("mpich-bbp-plain", "mpich", ring_mpich, on_ring(**PLAIN_COLLECTIVES), OVER_RING),
    Variant("mpich-shm", "mpich", through_mpich),
    Variant("mpich-ucx", "mpich", through_mpich,
            environment(MPIR_CVAR_NOLOCAL="1", UCX_TLS="posix,self")),
    Variant("mpich-fi-shm", "mpich", fabric_mpich, on_fabric(environment(), "shm")),
    Variant("mpich-tcp", "mpich", fabric_mpich, on_fabric(environment(**LOOPBACK), "tcp;ofi_rxm")),
    *(Variant(f"{mpi}-bbp-{link}{name}", mpi, ring, way(**bulk), proof)
      for mpi, ring in (("openmpi", ring_openmpi), ("mpich", ring_mpich))
      for link, way in (("udp", over_udp), ("fabric", over_fabric))
      for name, bulk, proof in (("", {}, OVER_RING), ("-bulk", PAST_RING, PAST_IT))),
]
BY_NAME = {variant.name: variant for variant in VARIANTS}


# ---- What is measured, over which of them


@dataclass
class Scene:
    name: str
    ranks: int
    figures: str
    sizes: str
    variants: str
    usual: bool = True  # measured unless others are asked for

    def arguments(self, setup):
        return ["--figures", self.figures, "--bytes", self.sizes, "--cpus", ",".join(setup.cpus),
                "--seconds", str(setup.seconds), "--deadline", str(setup.timeout)]


NATIVE = "openmpi-vader mpich-shm mpich-ucx"
ALL_MEMORY = "openmpi-bbp mpich-bbp " + NATIVE
COLLECTIVE = "openmpi-bbp openmpi-bbp-plain mpich-bbp mpich-bbp-plain " + NATIVE
SMALL = "8,64,256,1024"
SCENES = [
    Scene("latency", 2, "latency", "8", "billboard openmpi-null mpich-null openmpi-tcp openmpi-net "
          "openmpi-sockets mpich-fi-shm mpich-tcp " + ALL_MEMORY),
    Scene("rate", 2, "rate", "8,1024", ALL_MEMORY),
    Scene("bandwidth", 2, "stream,transfer", str(1 << 20), ALL_MEMORY),
    Scene("collectives-2", 2, "barrier,bcast", SMALL, COLLECTIVE),
    Scene("collectives-4", 4, "barrier,bcast", SMALL, COLLECTIVE),
    Scene("udp", 2, "latency", "8", "openmpi-bbp-udp openmpi-tcp mpich-bbp-udp mpich-tcp"),
    Scene("bulk", 2, "stream,transfer", "131072,1048576,16777216", "openmpi-bbp-udp "
          "openmpi-bbp-udp-bulk openmpi-bbp-fabric openmpi-bbp-fabric-bulk openmpi-tcp "
          "mpich-bbp-udp-bulk mpich-bbp-fabric-bulk mpich-tcp", False),
    Scene("crowd", 8, "reduce_loop", "64", "openmpi-bbp mpich-bbp " + NATIVE),
    Scene("fm", 2, "latency", "8,1024,65536",
          "billboard openmpi-bbp mpich-bbp openmpi-bbp-fm mpich-bbp-fm", False),
    Scene("sizes", 2, "latency", "0,1,8,64,256,1024,4096,16384,65536", ALL_MEMORY, False),
    Scene("large", 2, "stream,transfer", "65536,1048576,16777216,67108864", ALL_MEMORY, False),
    Scene("reductions-2", 2, "allreduce,reduce,allgather", SMALL, COLLECTIVE, False),
    Scene("reductions-4", 4, "allreduce,reduce,allgather", SMALL, COLLECTIVE, False),
]


def default_cpus():
    allowed = sorted(os.sched_getaffinity(0))
    return [str(cpu) for cpu in (allowed + allowed)[:2]]


def leftovers(ring):
    return sorted(glob.glob(f"/dev/shm/*{ring}*"))
