# SPDX-License-Identifier: Apache-2.0
"""How large rooms and classes may be, by tests/sizes.toml.

Who needs more changes it in the same commit, and says why.
"""

import collections
import re
import tomllib

import tree
from tree import CODE, files, short, text

MOST_OF_A_CLASS = 600  # lines, with its header
SLACK = 100, 0.02  # lines, or a share of them, by which a budget may be above what there is
MEMBER = re.compile(r"(?m)^[\w\[<][^;={}]*?\b(\w+)::~?\w+\([^;{}]*\)[^;{}]*\{")
CLASS = re.compile(r"(?m)^(?:class|struct) (?:RMEM_API )?(\w+)\b[^;{]*\{$")
NAMESPACE = re.compile(r"(?m)^namespace ([\w:]+) \{")


def sizes():
    file = tree.ROOT / "tests/sizes.toml"
    return tomllib.loads(text(file)) if file.is_file() else {}


def lines(file):
    return text(file).count("\n")


def room_of(file):
    """(which of `code` and `tests`, the room); None of what is in none."""
    first, *rest = short(file).split("/")
    if first == "tests":
        return "tests", rest[0] if len(rest) > 1 else "."
    return ("code", first) if rest else None


def rooms_keep_their_size():
    known, found = sizes(), collections.Counter()
    for file in files(*CODE):
        if room := room_of(file):
            found[room] += lines(file)
    for (kind, room), size in sorted(found.items()):
        most = known[kind].get(room, 0) if known else size
        if size > most:
            change = "make it smaller, or change that and say why"
        elif most - size > max(SLACK[0], SLACK[1] * most):
            change = "lower that, so that it stays small"
        else:
            continue
        yield f"tests/sizes.toml:1: {kind} of {room}: {size} lines, {most} are its budget: {change}"


def settings_keep_their_number():
    """Environment variables."""
    file, most = tree.ROOT / "rmem/base/environment_variable.cpp", sizes().get("settings", 0)
    names = re.findall(r'"(RMEM_\w+)",', text(file)) if file.is_file() else []
    if len(names) > most:
        yield f"{short(file)}:1: {len(names)} settings, {most} are their budget: do without one"


def classes_have_one_source():
    """And the two files at most MOST_OF_A_CLASS lines, but for what sizes.toml knows."""
    known = sizes().get("classes", {})
    headers, sources = {}, collections.defaultdict(set)
    for file in files(".cpp", ".hpp"):
        if short(file).startswith(("tests/", "fuzz/")):
            continue
        code = text(file)
        space = (NAMESPACE.search(code) or [""] * 2)[1]
        if file.suffix == ".hpp":
            for name in CLASS.findall(code):
                headers.setdefault((space, name), file)
        elif not file.stem.endswith("_posix") and file.parent.name != "windows":
            for name in MEMBER.findall(code):
                sources[space, name].add(file)
    for key in sorted(headers):
        file = headers[key]
        own, name = sources.get(key, ()), "::".join(key)
        size, most = lines(file) + sum(map(lines, own)), known.get(name, MOST_OF_A_CLASS)
        if size > most or (len(own) > 1 and name not in known):
            yield f"{short(file)}:1: {name}: {len(own)} sources, {size} lines: divide it"
        elif name in known and size <= MOST_OF_A_CLASS and len(own) < 2:
            yield f"tests/sizes.toml:1: {name} is small and in one source: it is no exception now"
