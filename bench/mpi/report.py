# SPDX-License-Identifier: Apache-2.0
"""From figures to the table of targets.

Ratios are taken within a round, and the median of the rounds counts.
"""
import statistics
from dataclasses import dataclass

OURS = ["openmpi-bbp", "mpich-bbp"]
MPICH = ["mpich-shm", "mpich-ucx"]  # what Debian's has: now one is faster, now the other


def cost(figure, percentile="p50"):
    """ns of the batches, or of single samples where there are none.

    Without the way of an answer that was waited for.
    """
    time = figure.get(f"batch_{percentile}_ns", figure[f"{percentile}_ns"])
    return time - figure.get("ack_ns", 0)


class Figures:
    """What the samples of one run stand for: their median.

    Or p10, the tenth that other jobs have disturbed least.
    """

    def __init__(self, figures, percentile="p50"):
        self.figures = [f for f in figures if f"{percentile}_ns" in f]
        self.percentile = percentile

    def per_round(self, scene, variant, figure, size):
        return {f["round"]: cost(f, self.percentile) for f in self.figures if f["scene"] == scene
                and f["variant"] == variant and f["figure"] == figure and f["bytes"] == size}

    def sizes(self, scene, figure):
        return sorted({f["bytes"] for f in self.figures
                       if f["scene"] == scene and f["figure"] == figure})

    def best_of(self, scene, variants, figure, size):
        """Of each round, the fastest variant."""
        rounds = {}
        for variant in variants:
            for number, value in self.per_round(scene, variant, figure, size).items():
                rounds[number] = min(value, rounds.get(number, value))
        return rounds


@dataclass
class Target:
    """One line of the table: `ours` against the best of `theirs`, in one scene."""
    title: str
    scene: str
    figure: str
    ours: str
    theirs: list
    limit: float
    how: str = "time"  # time: ours / theirs; speed: theirs / ours; difference: ours - theirs

    def of_size(self, figures, size):
        ours = figures.per_round(self.scene, self.ours, self.figure, size)
        theirs = figures.best_of(self.scene, self.theirs, self.figure, size)
        rounds = sorted(ours.keys() & theirs.keys())
        if self.how == "difference":
            return [ours[n] - theirs[n] for n in rounds]
        if self.how == "speed":
            return [theirs[n] / ours[n] for n in rounds]
        return [ours[n] / theirs[n] for n in rounds]

    def measured(self, figures):
        """Of several sizes the worst: its median, least and most, the number of rounds, the size.

        None: not measured.
        """
        found = [(statistics.median(values), min(values), max(values), len(values), size)
                 for size in figures.sizes(self.scene, self.figure)
                 if (values := self.of_size(figures, size))]
        worst = min if self.how == "speed" else max
        return worst(found) if found else None

    def is_met(self, median):
        return median >= self.limit if self.how == "speed" else median <= self.limit

    def asked(self):
        sign = ">=" if self.how == "speed" else "<="
        return f"{sign} {self.limit:g}" + (" ns" if self.how == "difference" else "")


def targets():
    fabric = ["openmpi-tcp", "openmpi-net", "openmpi-sockets", "mpich-fi-shm", "mpich-tcp"]
    for ours in OURS:
        yield Target("8 B one way - billboard", "latency", "latency", ours, ["billboard"], 150,
                     "difference")
    for ours in OURS:
        yield Target("8 B one way / MPICH's shared memory", "latency", "latency", ours, MPICH, 1.0)
    for ours in OURS:
        yield Target("8 B one way / Open MPI's vader", "latency", "latency", ours,
                     ["openmpi-vader"], 1.2)
    for ours in OURS:
        yield Target("8 B one way / best provider of libfabric", "latency", "latency", ours,
                     fabric, 0.5)
    for ours, native in (("openmpi-bbp", ["openmpi-vader"]), ("mpich-bbp", MPICH)):
        yield Target("a message of 64 at once / native", "rate", "rate", ours, native, 1.0)
    for ours in OURS:
        for figure in ("stream", "transfer"):
            yield Target(f"1 MiB bandwidth / MPICH's, {figure}", "bandwidth", figure, ours,
                         MPICH, 1.0, "speed")
    yield from targets_of_collectives()
    for ours, theirs in (("openmpi-bbp-udp", "openmpi-tcp"), ("mpich-bbp-udp", "mpich-tcp")):
        yield Target("udp: 8 B one way / MPI over tcp;ofi_rxm", "udp", "latency", ours,
                     [theirs], 0.6)
    for ours, native in (("openmpi-bbp", ["openmpi-vader"]), ("mpich-bbp", MPICH)):
        for figure in ("reduce_loop", "allreduce_loop"):
            yield Target(f"8 ranks, {figure} / native", "crowd", figure, ours, native, 1.5)


def targets_of_collectives():
    for ranks in (2, 4):
        for ours, native in (("openmpi-bbp", ["openmpi-vader"]), ("mpich-bbp", MPICH)):
            for figure in ("barrier", "bcast", "bcast_osu"):
                scene, title = f"collectives-{ranks}", f"{figure}, {ranks} ranks"
                yield Target(f"{title} / point to point", scene, figure, ours,
                             [f"{ours}-plain"], 0.6)
                yield Target(f"{title} / native", scene, figure, ours, native, 1.0)


def rows_of_targets(figures):
    """Each target as a row of text, and as numbers for programs."""
    medians, undisturbed = Figures(figures), Figures(figures, "p10")
    for target in targets():
        found, least_disturbed = target.measured(medians), target.measured(undisturbed)
        if found is None:
            continue
        median, least, most, rounds, size = found
        best = least_disturbed[0] if least_disturbed else None
        met = target.is_met(median)

        def text(value, digits=0 if target.how == "difference" else 2):
            return "-" if value is None else f"{value:.{digits}f}"
        yield ([target.title, target.ours, target.asked(), text(median), text(least), text(most),
                text(best), str(rounds), "yes" if met else "no"],
               {"target": target.title, "ours": target.ours, "theirs": target.theirs,
                "asked": target.asked(), "median": median, "least": least, "most": most,
                "undisturbed": best, "rounds": rounds, "bytes": size, "met": met})


def rows_of_figures(figures):
    """Medians over the rounds, a row for each figure, size and variant."""
    seen = {}
    for f in figures:
        seen.setdefault((f["scene"], f["figure"], f["bytes"], f["variant"]), []).append(f)

    def median(mine, name):
        values = [f[name] for f in mine if name in f]
        return f"{statistics.median(values):,.0f}".replace(",", " ") if values else "-"

    for (scene, figure, size, variant), mine in seen.items():
        yield [scene, figure, str(size), variant,
               *[median(mine, n) for n in ("batch_p50_ns", "ack_ns", "p10_ns", "p50_ns", "p99_ns",
                                           "mb_per_s")],
               str(len(mine))]


def aligned(rows, left):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [c.ljust(w) if i < left else c.rjust(w)
                 for i, (c, w) in enumerate(zip(row, widths))]
        yield "  ".join(cells).rstrip()
