# SPDX-License-Identifier: Apache-2.0
"""Starting and ending the programs of the systems, and leaving nothing behind."""
import contextlib
import glob
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def end(process):
    """Ends a process that we started, and what it started in its own group."""
    for kind, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, kind)
            process.wait(patience)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def start(command, environment, **redirections):
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, text=True,
                            start_new_session=True, **redirections)


class Daemon:
    """What a rival needs beside it while it is measured."""

    def __init__(self, rival, setup):
        self.process = None
        if rival.daemon:
            command, self.ready = rival.daemon(setup)
            self.log = setup.scratch / f"{rival.name}.log"
            self.sink = self.log.open("w")
            self.process = start(command, setup.environment(rival), stdout=self.sink,
                                 stderr=subprocess.STDOUT)

    def __enter__(self):
        deadline = time.monotonic() + 10
        while self.process and self.ready not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError("its daemon is not ready: " + self.log.read_text()[-300:])
            time.sleep(0.05)

    def __exit__(self, *_):
        if self.process:
            end(self.process)
            self.sink.close()


@contextlib.contextmanager
def tidied(rival):
    """Removes what the rival leaves and what was not there before: never another one's files."""
    before = traces_of(rival)
    try:
        yield
    finally:
        for path in traces_of(rival) - before:
            os.unlink(path)


def traces_of(rival):
    return {path for pattern in rival.traces for path in glob.glob(pattern)}


class Lab:
    """Two hosts of scripts/lab, and what each of them loses."""

    interface = "eth0"
    script = HERE.parents[1] / "scripts/lab"

    def __init__(self, losses=("0",)):
        self.losses, self.name = losses, f"rivals_{os.getpid()}"
        spaces = ",".join(f"rmem-{self.name}-{host}" for host in (0, 1))
        self.program_options = ["--spaces", spaces, "--addresses", "10.0.0.1,10.0.0.2",
                                "--interface", self.interface]

    def __enter__(self):
        self.do("up", "2")
        return self

    def __exit__(self, *_):
        self.do("down")

    def lose(self, loss):
        self.do("loss", f"{loss}%")

    def do(self, *words):
        done = subprocess.run([self.script, *words, "--name", self.name], capture_output=True,
                              text=True)
        if done.returncode != 0:
            sys.exit(f"scripts/lab: {done.stderr.strip()}")


TRACES = ("rivals", "iceoryx", "iox", "roudi", "mpich", "hydra", "pmi", "vader", "ompi", "openmpi",
          "ucx", "fi_shm", "zmq", "nanomsg", "_shm_")


def places():
    return {str(p) for place in ("/dev/shm", "/tmp") for p in Path(place).iterdir()}


def report_new_files(before):
    """Names only what looks like ours: other programs may use these directories meanwhile."""
    new = [p for p in sorted(places() - before) if any(t in p.lower() for t in TRACES)]
    for path in new:
        print(f"left behind, please look: {path}", flush=True)
    return new


def default_cpus():
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed + allowed)[:2]


def default_build():
    build = HERE.parents[1] / "build"
    usual = [build / "rivals", build / "bench" / "rivals", *sorted(build.glob("*/bench/rivals"))]
    return next((b for b in usual if (b / "rival_floor").exists()), usual[0])
