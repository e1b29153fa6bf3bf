# SPDX-License-Identifier: Apache-2.0
"""From rows (a line of JSON each) to tables, targets, pages and pictures.

Ratios are taken within a round, so that a change of the machine's speed does not count, and the
median of the rounds is told.
"""
import collections
import shutil
import statistics
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
STATES = {"short hops": (0, 45), "middling hops": (45, 130), "long hops": (130, float("inf"))}
MEGABYTE = 1 << 20


def number(value, digits=None):
    if value is None:
        return "–"
    if digits is None:
        digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f}".replace(",", " ")


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def spread(values):
    """Median, least and most."""
    if not values:
        return "–"
    return f"{number(median(values))} ({number(min(values))}–{number(max(values))})"


def markdown(heads, rows):
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def grouped(rows, *names):
    """Rows that are equal in these, in the order in which they came."""
    groups = collections.defaultdict(list)
    for row in rows:
        groups[tuple(row.get(name) for name in names)].append(row)
    return groups


def by_round(rows, field="p50_ns"):
    """Of each round the median: of several batches or runs."""
    return {number: median([r.get(field) for r in found])
            for (number,), found in grouped(rows, "round").items()}


def batches(rows):
    """Those of which a sample is several operations, free of the clock's cost, if there are any."""
    most = max(row["count"] for row in rows)
    return [row for row in rows if row["count"] == most]


def singles(rows):
    least = min(row["count"] for row in rows)
    return [row for row in rows if row["count"] == least]


def ratios(rows, others, field="p50_ns"):
    mine, theirs = by_round(batches(rows), field), by_round(batches(others), field)
    return [mine[n] / theirs[n] for n in mine if mine[n] is not None and theirs.get(n)]


# ---- A scene's table

KNOWN = {"rhythm", "bytes", "count", "more", "ranks", "samples", "min_ns", "p10_ns", "p50_ns",
         "p90_ns", "p99_ns", "p999_ns", "max_ns", "less_ns", "system", "scene", "round", "loss",
         "hop_ns", "suite", "version"}
TIMES = {"min": "min_ns", "p10": "p10_ns", "p50": "p50_ns", "p90": "p90_ns", "p99": "p99_ns",
         "p99.9": "p999_ns"}
MESSAGES = ("stream", "window", "view", "both")


def base_of(found, systems, wanted):
    """What ratios are to: that system, or the scene's first that was measured."""
    names = ([wanted] if wanted else []) + systems
    return next((found[(name,)] for name in names if (name,) in found), None)


def table(rows, systems, wanted=None):
    """A line for each step and system, with the ratio to the first system."""
    further = sorted({name for row in rows for name in row} - KNOWN)
    steps = grouped(rows, "ranks", "loss", "rhythm", "bytes", "more")
    shares = any(row["rhythm"] == "both" for row in rows)
    heads = ["step", "system", "mean of batches", *TIMES, "MB/s", "ratio", "hop", "rounds",
             *(["share"] if shares else []), *(name.replace("_", " ") for name in further)]
    lines = []
    for (ranks, loss, rhythm, size, more), every in steps.items():
        found = grouped(every, "system")
        base = base_of(found, systems, wanted)
        step = " ".join([rhythm, f"{size} B", *([f"more {more:g}"] if more else []),
                         *([f"{ranks} ranks"] if ranks != 2 else []),
                         *([f"loss {loss} %"] if loss else [])])
        for name in systems:
            mine = found.get((name,))
            if not mine:
                continue
            several, one = batches(mine), singles(mine)
            mean = median([r.get("p50_ns") for r in several])
            is_batch = mean is not None and several[0]["count"] > 1
            one_way = [r for r in steps.get((ranks, loss, "stream", size, 0), [])
                       if r["system"] == name]
            lines.append([
                step, name, number(mean) if is_batch else "–",
                *(number(median([r.get(t) for r in one])) for t in TIMES.values()),
                number(size * 1e3 / mean) if size and mean and rhythm in MESSAGES else "–",
                spread(ratios(mine, base)) if base else "–",
                number(median([r.get("hop_ns") for r in mine])),
                str(len({r["round"] for r in mine})),
                *([spread(ratios(one_way, mine)) if rhythm == "both" and one_way else "–"]
                  if shares else []),
                *(number(median([r.get(n) for r in mine])) for n in further)])
    used = [i for i in range(len(heads)) if i < 2 or any(line[i] != "–" for line in lines)]
    return markdown([heads[i] for i in used], [[line[i] for i in used] for line in lines])


# ---- Curves: a line for each size, a column for each system


def state_of(row):
    hop = row.get("hop_ns") or 0
    return next(s for s, (low, high) in STATES.items() if low <= hop < high)


def with_best_ring(found):
    """The bare ring is the better of two in each round."""
    rings = [r for name in ("bare_ring_16", "bare_ring_64") for r in found.pop((name,), [])]
    if rings:
        found[("bare ring",)] = [min(mine, key=lambda r: r["p50_ns"])
                                 for mine in grouped(rings, "round").values()]
    return found


def curves(rows, systems):
    """For each state of the machine and number of ranks: its name, systems, and figures by size."""
    for state in STATES:
        for (ranks,), found in grouped([r for r in rows if state_of(r) == state], "ranks").items():
            sizes = {size: with_best_ring(grouped(mine, "system")) for (size,), mine in
                     sorted(grouped(found, "bytes").items())}
            there = {name for groups in sizes.values() for name, in groups}
            names = [n for n in [*systems, "bare ring"] if n in there]
            yield state + (f", {ranks} ranks" if ranks != 2 else ""), names, sizes


def curve_table(names, sizes):
    others = names[1:]
    lines = []
    for size, groups in sizes.items():
        own = groups.get((names[0],), [])
        them = [groups.get((n,), []) for n in others]
        every = [r for found in groups.values() for r in found]
        lines.append([
            str(size), number(median([r.get("hop_ns") for r in every]), 0), str(len(own)),
            *(number(median([r["p50_ns"] for r in found]), 1) for found in [own, *them]),
            *(number(median(ratios(own, found)) if own and found else None, 2)
              for found in them)])
    return markdown(["B", "hop", "rounds", *names, *(f"÷ {n}" for n in others)], lines)


# ---- Targets


def judged(target, rows):
    """The worst size: its values of the rounds, and the size; None: not measured."""
    found = []
    mine = [r for r in rows if r["scene"] == target.scene and r["rhythm"] == target.rhythm
            and not r.get("more")]
    for (_, size), of_size in grouped(mine, "ranks", "bytes").items():
        systems = grouped(of_size, "system")
        ours = by_round(batches(systems.get((target.ours,)) or [{"count": 0}]))
        theirs = [by_round(batches(systems[(n,)])) for n in target.theirs if (n,) in systems]
        rounds = [n for n in ours if n is not None and any(n in each for each in theirs)]
        values = []
        for n in rounds:
            best = min(each[n] for each in theirs if n in each)
            values.append({"difference": ours[n] - best, "speed": best / ours[n],
                           "time": ours[n] / best}[target.how])
        if values:
            found.append((values, size))
    worst = min if target.how == "speed" else max
    return worst(found, key=lambda f: median(f[0])) if found else None


def targets(asked, rows):
    lines = []
    for target in asked:
        if (found := judged(target, rows)) is None:
            continue
        values, size = found
        is_speed = target.how == "speed"
        met = median(values) >= target.limit if is_speed else median(values) <= target.limit
        lines.append([target.title, target.ours, str(size),
                      f"{'≥' if is_speed else '≤'} {target.limit:g}", spread(values),
                      str(len(values)), "yes" if met else "no"])
    if lines:
        yield from markdown(["target", "ours", "B", "asked", "measured", "rounds", "met"], lines)


# ---- The parameters of a bandwidth's curve, as in the paper of FM

PUBLISHED = {"fm1": (54, 4.1, 21.4), "gamma": (192, None, 12.2), "dp": (None, None, 12.2)}


def fit_relative(sizes, times):
    """The line, fixed and per byte, from which the times are away by the least of their own size.

    Small messages count as much as large ones.
    """
    n = x = y = xx = xy = 0.0
    for size, time in zip(sizes, times):
        w = 1 / time ** 2
        n, x, y = n + w, x + w * size, y + w * time
        xx, xy = xx + w * size ** 2, xy + w * size * time
    slope = (n * xy - x * y) / (n * xx - x * x)
    return (y - slope * x) / n, slope


def size_at_rate(sizes, times, rate):
    """The smallest size at which messages reach this rate; between two sizes by the straight line
    of their rates."""
    before = None
    for size, time in zip(sizes, times):
        here = size / time
        if here >= rate:
            if before is None:
                return size
            return before[0] + (size - before[0]) * (rate - before[1]) / (here - before[1])
        before = size, here
    return None


def parameters(rows, systems):
    lines = []
    for name in systems:
        values = collections.defaultdict(list)
        for (_,), mine in grouped([r for r in rows if r["system"] == name], "round").items():
            curve = {rhythm: sorted((r["bytes"], r["p50_ns"]) for r in mine
                                    if r["rhythm"] == rhythm) for rhythm in ("stream", "pingpong")}
            if any(len(points) < 2 for points in curve.values()):
                continue
            sizes, times = zip(*curve["stream"])
            fixed, per_byte = fit_relative(sizes, times)
            values["r_inf"].append(1e9 / per_byte / MEGABYTE)
            values["of_line"].append(fixed / per_byte)
            values["n_half"].append(size_at_rate(sizes, times, 0.5 / per_byte))
            values["t0"].append(fit_relative(*zip(*curve["pingpong"]))[0])
            values["peak"].append(max(s / t for s, t in curve["stream"]) * 1e9 / MEGABYTE)
        if values:
            paper = PUBLISHED.get(name, (None, None, None))
            lines.append([name, *(number(median(values[v])) for v in
                                  ("n_half", "of_line", "t0", "r_inf", "peak")),
                          *map(number, paper)])
    if lines:
        yield from markdown(["system", "n½", "n½ of the line", "t0 ns", "r∞ MB/s", "peak MB/s",
                             "paper: n½", "t0 µs", "r∞"], lines)


# ---- Pictures

COLOURS = ["#2f6db3", "#777777", "#aaaaaa", "#c0392b", "#e0a030", "#3a9a5b", "#8e5bb5", "#b06a3b",
           "#17a2b8", "#cccccc"]
TERMINALS = {"svg": "svg size 900,540 font 'sans,14' background 'white'",
             "png": "pngcairo size 900,540 font 'sans,12'"}


def draw(data, picture, kind, **words):
    """By gnuplot, `kind` of pictures.gp; False where there is none."""
    if not shutil.which("gnuplot"):
        return False
    told = "".join(f"{name} = '{word}'; " for name, word in words.items())
    subprocess.run(["gnuplot", "-e", f"set terminal {TERMINALS[picture.suffix[1:]]}; "
                    f"set output '{picture}'; data = '{data}'; kind = '{kind}'; {told}",
                    HERE / "pictures.gp"], check=True)
    return True


def draw_curve(picture, title, names, sizes):
    data = picture.with_suffix(".dat")
    lines = [" ".join(f'"{word}"' for word in ["bytes", *names])]
    for size, groups in sizes.items():
        figures = [median([r["p50_ns"] for r in groups.get((n,), [])]) for n in names]
        lines.append(" ".join([str(size or 0.8), *("?" if f is None else f"{f:.1f}"
                                                   for f in figures)]))
    data.write_text("\n".join(lines) + "\n")
    drawn = draw(data, picture, "curve", about=title, colours=" ".join(COLOURS[:len(names)]))
    data.unlink()
    return drawn


NAMES = {"floor": "cache line", "openmpi-vader": "Open MPI", "mpich-ucx": "MPICH", "ucx": "UCX",
         "libfabric_shm": "libfabric shm", "boost_mq": "Boost mq", "zeromq_ipc": "ZeroMQ ipc",
         "nanomsg_ipc": "nanomsg ipc"}


def write_data(rows, systems, place):
    """The data of docs/measurements/pictures: 8 B of all systems, and ours and MPI by size."""
    found = grouped([r for r in rows if r["scene"] == "systems"], "system")
    lines = []
    for (name,), mine in found.items():
        times = [median([r["p50_ns"] for r in batches(mine)]),
                 *(median([r[p] for r in singles(mine)]) for p in ("p50_ns", "p99_ns"))]
        told = " ".join(f"{t:.1f}" for t in times)
        lines.append((times[0], f'"{NAMES.get(name, name)}" {told}'))
    (place / "systems.dat").write_text("\n".join(
        ["# system, mean of batches, p50, p99: ns one way of 8 B, direct link",
         *(line for _, line in sorted(lines))]) + "\n")
    lines = ["# bytes, then ns one way: rmem inline, rmem paper, Open MPI, MPICH"]
    for (size,), mine in sorted(grouped([r for r in rows if r["scene"] == "sizes"],
                                        "bytes").items()):
        times = [median([r["p50_ns"] for r in mine if r["system"] == n]) for n in systems]
        lines.append(" ".join([str(size), *("?" if t is None else f"{t:.1f}" for t in times)]))
    (place / "sizes.dat").write_text("\n".join(lines) + "\n")


# ---- Pages


def sections(suite, rows, place=None, base=None):
    """Markdown of all scenes; with pictures beside the page in `place`."""
    if asked := list(targets(suite.targets, rows)):
        yield from ["## Against the targets", "", *asked, ""]
    for scene in suite.scenes:
        mine, systems = [r for r in rows if r["scene"] == scene.name], scene.systems.split()
        if not mine:
            continue
        if suite.curves:
            for state, names, sizes in curves(mine, systems):
                title = f"{scene.title}, {state}"
                yield from [f"## {title}", ""]
                if place and len(sizes) > 1:
                    picture = place / f"{title.replace(',', '').replace(' ', '-')}.svg"
                    if draw_curve(picture, title, names, sizes):
                        yield from [f"![{title}]({picture.name})", ""]
                yield from [*curve_table(names, sizes), ""]
            continue
        yield from [f"## {scene.title}", "", *table(mine, systems, base), ""]
        if fits := list(parameters(mine, systems)) if scene.name == "bandwidth" else []:
            yield from [*fits, ""]
        if scene.notes:
            yield from [scene.notes, ""]


def page(title, machine, suite, rows, place=None, base=None):
    yield from [f"# {title}", "", f"{machine['processor']}, {machine['processors']} processors, "
                f"Linux {machine['kernel']}, load {machine['load']:.1f} when it began, processors "
                f"{machine['cpus']}. All systems in turn, round by round; times in ns, medians of "
                "the rounds; ratios are taken within a round, to the first system of a table: the "
                "median, and in brackets the least and the most. Hop: of a cache line, just "
                "before.", "", "`" + machine["command"] + "`", ""]
    yield from sections(suite, rows, place, base)
