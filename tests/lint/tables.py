# SPDX-License-Identifier: Apache-2.0
"""The rules of tables and lists in pages that tell what is in the tree."""

import re

import tree
from tree import CODE, all_files, files, short, text

NAMED = re.compile(r"`([^`]+)`")
OTHER_FOLDERS = {"tests", "docs", "examples", "scripts", "cmake", "fuzz"}


def section(page, heading, start="| "):
    """The lines there that begin so, with their numbers; none where there is no such page."""
    file = tree.ROOT / page
    is_in = False
    for number, line in enumerate(text(file).splitlines() if file.is_file() else (), 1):
        is_in = line == f"## {heading}" or is_in and not line.startswith("## ")
        if is_in and line.startswith(start):
            yield number, line


def folders():
    """Each at the root, and each that has code of ours."""
    for file in all_files():
        folder = file.relative_to(tree.ROOT).parent
        if folder.parts and not folder.parts[0].startswith("."):
            yield folder.parts[0]
            if file.suffix in CODE and folder.parts[0] not in OTHER_FOLDERS:
                yield folder.as_posix()


def threads():
    """What is made of a name and a function, as a HelperThread is."""
    for file in files(".cpp", ".hpp"):
        if not short(file).startswith(("tests/", "bench/")):
            yield from re.findall(r'"([a-z0-9]+(?:-[a-z]+)+)",\s*\[', text(file))


def tables(layers):
    """(page, heading, (name, line) of what is listed there, names of what is there)."""
    house, architecture = ("README.md", "The house"), "docs/ARCHITECTURE.md"
    paths = ((n, re.findall(r"`([^`]+)/`", line)) for n, line in section(*house))
    listed = ((f"{p[0]}/{name}" if i else name, n) for n, p in paths for i, name in enumerate(p))
    yield *house, listed, folders()
    for heading, there in (("The layers", layers), ("Threads and processes", threads())):
        cells = ((n, line.split(" | ")[0]) for n, line in section(architecture, heading))
        listed = ((name, n) for n, cell in cells for name in NAMED.findall(cell))
        yield architecture, heading, listed, there
    place = (architecture, "Where to read on")
    links = ((n, re.findall(r"\((design/[^)#]+)", line)) for n, line in section(*place, ""))
    designs = (short(f)[5:] for f in files(".md") if short(f).startswith("docs/design/"))
    yield *place, ((name, n) for n, names in links for name in names), designs


def differences(layers):
    """Between what pages list and what is there; and what the picture of the layers lacks."""
    for page, heading, listed, there in tables(layers):
        listed, there = dict(listed), set(there)
        if (tree.ROOT / page).is_file():
            for name in sorted(there - set(listed)):
                yield f"{page}:{min(listed.values(), default=1)}: add {name} below `{heading}`"
            for name in sorted(set(listed) - there):
                yield f"{page}:{listed[name]}: there is no {name}"
    picture = tree.ROOT / "docs/pictures/layers.svg"
    shown = set(re.findall(r"\w+", text(picture))) if picture.is_file() else set()
    for name in layers if shown else ():
        if (tree.ROOT / name).is_dir() and name.rpartition("/")[2] not in shown:
            yield f"{short(picture)}:1: draw {name}"


def lists_name_all_links():
    """`direct, ring or …`, in code and in pages, is all links, or all but sim."""
    source = tree.ROOT / "rmem/base/link_kind.cpp"
    names = re.findall(r'\{LinkKind::\w+, "(\w+)"\}', text(source)) if source.is_file() else []
    listing = re.compile(r'direct["`]*, ["`]*ring(?:["`\s]*, ["`\s]*\w+)*["`]* (?:or|and) ["`]*\w+')
    for file in all_files():
        if names and not short(file).startswith(("docs/measurements/archive/", "tests/lint/")):
            for match in listing.finditer(said := text(file)):
                if {*re.findall(r"\w+", match[0])} - {"or", "and", "sim"} != {*names} - {"sim"}:
                    number = said.count("\n", 0, match.start()) + 1
                    yield f"{short(file)}:{number}: the links are {', '.join(names)}"


def examples_are_where_their_row_says():
    """Of the table of what to touch, in CONTRIBUTING.md."""
    for number, line in list(section("CONTRIBUTING.md", "Where things belong"))[1:]:
        _, what, touch, *last = line.split("|")
        examples = NAMED.findall(last[0])
        if not examples:
            yield f"CONTRIBUTING.md:{number}: give an example of{what}"
        example = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, examples))})(?!\w)")
        for name in NAMED.findall(touch):
            place = tree.ROOT / name.split()[0]
            inside = place.rglob("*") if place.is_dir() else [place]
            if "/" in name and not any(f.is_file() and example.search(text(f)) for f in inside):
                yield f"CONTRIBUTING.md:{number}: {name} has no {' or '.join(examples)}"
