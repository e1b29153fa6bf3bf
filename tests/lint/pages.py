# SPDX-License-Identifier: Apache-2.0
"""The rules of pages in Markdown."""

import re

from tree import CODE, COMMENT_OR_LITERAL, all_files, files, is_script, short, text

PROGRAM = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
# `name()`, `Class::name`, `ClassName`, `name_of_words`
NAME = re.compile(
    r"`(?P<name>(?=\w*(?:[A-Z]\w*[a-z]|\w_\w)|\w+::|\w+\()(?:\w+::)*\w+)(?:\([^()`\n]*\))?`"
)
# What has members: where it is defined, or they are named.
OWNER = re.compile(
    r"\b(?:class|struct|namespace)\b[^;{}]*?\b(\w+)\s*(?:final\s*)?[:{;]|\b(\w+)(?:<[^<>]*>)?::"
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
    """Each word of the code, comments apart, and of the scripts; and what files are called. Beside
    that, for each class or namespace the words of the files that define it or name what it has.
    """
    names, owned = {"std"}, {}
    for file in all_files():
        names.add(file.stem)
        if file.suffix in CODE:
            code = COMMENT_OR_LITERAL.sub(lambda m: " " if m["comment"] else m[0], text(file))
            words = set(re.findall(r"\w+", code))
            names.update(words)
            for owner in set(sum(OWNER.findall(code), ())):
                owned.setdefault(owner, set()).update(words)
        elif is_script(file):
            names.update(re.findall(r"\w+", text(file)))
    return names, owned


def named_functions_exist():
    """A function or a class that a page names in backticks is there."""
    known, owned = names_of_the_tree()
    for file in files(".md"):
        if short(file).startswith(OTHERS):
            continue
        page = without_programs(text(file))
        for match in NAME.finditer(page):
            names = match["name"].split("::")
            for owner, name in zip([None, *names], names):
                is_known = name in known and name in owned.get(owner, known)
                if not is_known and not FOREIGN.fullmatch(name):
                    line = page.count("\n", 0, match.start()) + 1
                    yield f"{short(file)}:{line}: there is no {name}"
