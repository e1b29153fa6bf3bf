#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What compiling takes of a processor, part by part, against tests/budget.toml.

    budget.py BUILD          a line for each part; fails where one is over: by more than a third
                             and three seconds, since one slow object is much of a small part
    budget.py BUILD --page   the same as a table, for docs/measurements/check.md

`scripts/lib/timed` notes the seconds of each object in BUILD/processor-seconds. They count as on a
machine that takes `reference` seconds for the headers that are parsed for all (objects *.gch),
so a slow machine is not over. An object from ccache costs nothing there, and its last figure in
this folder counts; a part of which more than a tenth has none is not judged. Exit code 0: within
the budget; 1: over it; 77: nothing to judge.
"""

import collections
import pathlib
import re
import sys
import tomllib

FROM_CACHE_S = {"o": 0.08, "gch": 1.0}  # to copy what is parsed for all takes longer
OVER, SLACK_S = 4 / 3, 3
OBJECT = re.compile(
    r"(?P<folder>.*?)/?CMakeFiles/(?P<target>[^/]+)\.dir/(?P<source>.*)\.(?P<kind>o|gch)$"
)
BUDGET = pathlib.Path(__file__).resolve().parents[1] / "budget.toml"
TESTED = [path.name for path in BUDGET.parent.iterdir() if path.is_dir()]


def seconds_of(text):
    minutes, seconds = text.rstrip("s").split("m")
    return int(minutes) * 60 + float(seconds)


def seconds_of_objects(log):
    """Object -> processor seconds, of the last time that it was compiled."""
    found = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        user, system, name = line.split(maxsplit=2)
        seconds = seconds_of(user) + seconds_of(system)
        if seconds >= FROM_CACHE_S[name.rpartition(".")[2]]:
            found[name] = seconds
    return found


def part_of(name):
    """The folder of the tree that an object is of; of tools and tests the part in it."""
    match = OBJECT.match(name)
    if not match or match["kind"] != "o":
        return None
    if match["folder"] == "tools":
        return "tools/" + match["target"].removesuffix("_parts").replace("_", "-")
    if match["folder"] == "tests":
        folders = (folder for folder in TESTED if match["target"].startswith(folder + "_"))
        return "tests/" + next(folders, "programs")
    return match["folder"].split("/")[0] or None


def objects_of(build):
    """Every object that the build makes."""
    text = (build / "build.ninja").read_text(encoding="utf-8")
    return set(re.findall(r"^build (\S+\.(?:o|gch))(?: |:)", text, re.MULTILINE))


def parts_of(build):
    """Part -> (seconds on the reference machine, objects, those with a figure)."""
    measured, all_objects = seconds_of_objects(build / "processor-seconds"), objects_of(build)
    reference = [s for name, s in measured.items() if name.endswith(".gch")]
    wanted = sum(name.endswith(".gch") for name in all_objects)
    if len(reference) < wanted or not reference:
        return {}
    speed = tomllib.loads(BUDGET.read_text(encoding="utf-8"))["reference"] / sum(reference)
    parts = collections.defaultdict(lambda: [0.0, 0, 0])
    for name in all_objects:
        if part := part_of(name):
            parts[part][0] += measured.get(name, 0) * speed
            parts[part][1] += 1
            parts[part][2] += name in measured
    return parts


def main(arguments):
    build, is_page = pathlib.Path(arguments[0]), "--page" in arguments
    if not (build / "processor-seconds").is_file() or not (parts := parts_of(build)):
        print("skipped: what all parse together came from ccache; nothing tells how fast this is")
        return 77
    budget = tomllib.loads(BUDGET.read_text(encoding="utf-8"))["parts"]
    over = False
    if is_page:
        print("| part | processor seconds | budget | objects |\n|---|---|---|---|")
    for part, (seconds, objects, known) in sorted(parts.items()):
        most = budget.get(part)
        judged = known >= 0.9 * objects
        verdict = "not judged: from ccache"
        if judged and most is None:
            verdict = "has no budget"
        elif judged:
            verdict = "over" if seconds > most * OVER + SLACK_S else "fits"
        over |= verdict in ("over", "has no budget")
        if is_page and judged:
            print(f"| {part} | {seconds:.0f} | {most} | {objects} |")
        elif not is_page:
            print(f"{part:28} {seconds:6.0f} s of {most} s, {objects} objects: {verdict}")
    if over:
        print(f"Make it less, or change {BUDGET.name}, and say in the commit why.")
    return int(over)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
