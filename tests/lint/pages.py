# SPDX-License-Identifier: Apache-2.0
"""The rules of pages in Markdown."""

import re

from tree import CODE, COMMENT_OR_LITERAL, all_files, files, is_script, short, text

PROGRAM = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
# `name()`, `Class::name`, `ClassName`, `name_of_words`
NAME = re.compile(
    r"`(?P<name>(?=\w*(?:[A-Z]\w*[a-z]|\w_\w)|\w+::|\w+\()(?:\w+::)*\w+)(?:\([^()`\n]*\))?`"
)
# Those of other systems' interfaces.
FOREIGN = re.compile(
    r"(?:fi|ucp|MPID)_\w+|SendControl|add_subdirectory|find_package|FetchContent|emptyDir|Terms"
)
# What they name is no more, is an example, or is a card maker's.
OTHERS = ("CHANGELOG.md", "CONTRIBUTING.md", "docs/measurements/", "docs/guide/rig-without")


def without_programs(page):
    """The page with empty lines for its blocks of code."""
    return PROGRAM.sub(lambda match: "\n" * match[0].count("\n"), page)


def names_of_the_tree():
    """Each word of the code, comments apart, and of the scripts; and what files are called."""
    names = {"std"}
    for file in all_files():
        names.add(file.stem)
        if file.suffix in CODE:
            code = COMMENT_OR_LITERAL.sub(lambda m: " " if m["comment"] else m[0], text(file))
            names.update(re.findall(r"\w+", code))
        elif is_script(file):
            names.update(re.findall(r"\w+", text(file)))
    return names


def named_functions_exist():
    """A function or a class that a page names in backticks is there."""
    known = names_of_the_tree()
    for file in files(".md"):
        if short(file).startswith(OTHERS):
            continue
        page = without_programs(text(file))
        for match in NAME.finditer(page):
            for name in match["name"].split("::"):
                if name not in known and not FOREIGN.fullmatch(name):
                    line = page.count("\n", 0, match.start()) + 1
                    yield f"{short(file)}:{line}: there is no {name}"
