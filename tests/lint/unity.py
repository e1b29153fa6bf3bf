# SPDX-License-Identifier: Apache-2.0
"""The rule of sources that are compiled several at a time (RMEM_UNITY)."""

import re

from tree import COMMENT_OR_LITERAL, files, short, text

NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.MULTILINE)
UNNAMED = re.compile(r"^namespace \{$.*?^\} +$", re.DOTALL | re.MULTILINE)  # its comment is blanks
# Where clang-format begins one: at the start of a line.
FUNCTION = re.compile(
    r"^[\w\[][^\n;={}()]*?[ *&](?P<name>\w+)\((?P<parameters>[^{;]*?)\)[^;{()]*\{", re.MULTILINE
)
TEMPLATES = re.compile(r"<[^<>()]*>")
ALONE = ("tests/", "fuzz/", "examples/", "bench/", "cards/")
IN_RMEM = re.compile(r"tools/(?:doctor|node|record|run|serve|watch)/")  # one library


def library_of(file):
    folders = short(file).split("/")[:-1]
    if IN_RMEM.match(short(file)):
        return "tools/rmem"
    return "/".join(folders[:2]) if folders[0] in ("tools", "ports") else folders[0]


def functions_of(file):
    """(library, namespace, name, number of parameters) and line of the file's own functions."""
    code = COMMENT_OR_LITERAL.sub(
        lambda match: re.sub(r"[^\n]", " ", match[0]) if match["comment"] else "0", text(file)
    )
    space = NAMESPACE.search(code)
    for unnamed in UNNAMED.finditer(code):
        for match in FUNCTION.finditer(unnamed[0]):
            parameters, before = match["parameters"], None
            while parameters != before:
                before, parameters = parameters, TEMPLATES.sub("", parameters)
            count = parameters.count(",") + 1 if parameters.strip() else 0
            line = code.count("\n", 0, unnamed.start() + match.start()) + 1
            yield (library_of(file), space[1] if space else "", match["name"], count), line


def own_functions_are_told_apart():
    """In an unnamed namespace no name is that of another source's function which takes as many
    arguments: compiled together, a call may find the other one."""
    known = {}
    for file in files(".cpp"):
        if short(file).startswith(ALONE):
            continue
        for function, line in functions_of(file):
            other = known.setdefault(function, file)
            if other != file:
                yield (
                    f"{short(file)}:{line}: {short(other)} has a function {function[2]}() as well; "
                    "give one of them another name, or both the same home"
                )
