# SPDX-License-Identifier: Apache-2.0
"""The rules of constants that comments and pages name.

A figure stands before the name or behind it: `64 KiB (kFillBytes)`, `kFillBytes (64 KiB)` or
`kFillBytes = 64 KiB`, each also with the name in backticks. A manual page has the name, which is of
no use to its readers, as a comment (`.\\" kFillBytes`) below the line with the figure.
"""

import ast
import collections
import operator
import re

from tree import CODE, all_files, comments_only, files, short, text

NAME = r"k[A-Z]\w*"
DEFINITION = re.compile(
    rf"\bconstexpr\s[\w:\s]*?\b(?P<name>{NAME})\s*=\s*(?P<value>[^;{{}}]*(?:\{{\d+\}}[^;{{}}]*)?);"
)
FIGURE = r"(?P<figure>\d[\d ',]*(?:\.\d+)?)(?:\s?(?P<unit>ns|µs|us|ms|s|bytes|B|KiB|MiB|GiB|kB)\b)?"
CLAIMS = (
    re.compile(rf"(?<![\w.]){FIGURE}[^\n]*\n\.\\\" (?P<name>{NAME})$", re.MULTILINE),
    re.compile(rf"(?<![\w.]){FIGURE}\s+\(`?(?P<name>{NAME})`?[);]"),
    re.compile(rf"\b(?P<name>{NAME})`?\s+\({FIGURE}(?=[),;])"),
    re.compile(rf"\b(?P<name>{NAME})`?\s+=\s+{FIGURE}"),
)
UNITS = {
    None: 1,
    **{"ns": 1, "µs": 1_000, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000},
    **{"bytes": 1, "B": 1, "kB": 1_000, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
}
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.USub: operator.neg,
}


def pages_and_comments():
    """(file, its text with nothing but what is for people); dated measurements are of their day."""
    for file in all_files():
        name = short(file)
        if file.suffix in CODE:
            yield file, comments_only(text(file))
        elif (file.suffix == ".md" or name.startswith("docs/man/")) and not (
            name.startswith("docs/measurements/") and re.search(r"\d", name)
        ):
            yield file, text(file)


def lines_with(pattern, words):
    """(line number, match) of each in a text."""
    for match in pattern.finditer(words):
        yield words.count("\n", 0, match.start()) + 1, match


def named_constants_exist():
    """A constant in a comment or a page is one of the code. (A page's programs are code.)"""
    name = re.compile(rf"\b{NAME}\b")
    known = set()
    for file in files(*CODE):
        code, comments = text(file), comments_only(text(file))
        counts = collections.Counter(name.findall(code))
        counts.subtract(name.findall(comments))
        known |= {word for word, more in counts.items() if more > 0}
    for file, words in pages_and_comments():
        own = set()
        if file.suffix == ".md":
            programs = "".join(re.findall(r"^```c\w*\n.*?^```", words, re.DOTALL | re.MULTILINE))
            own = set(name.findall(programs))
        for number, match in lines_with(name, words):
            if match[0] not in known | own:
                yield f"{short(file)}:{number}: there is no {match[0]}"


def definitions():
    """Name -> the values that constants of that name are given, as text."""
    values = collections.defaultdict(set)
    for file in files(*CODE):
        for match in DEFINITION.finditer(text(file)):
            values[match["name"]].add(match["value"])
    return values


def values_of(name, known, deep=0):
    """What the constants of that name are; empty where this cannot tell."""
    return {
        value
        for written in known.get(name, ()) if deep < 8
        for value in [value_of(written, known, deep)] if value is not None
    }


def value_of(written, known, deep):
    """An expression of numbers, of + - * / << and of constants that have one value."""
    plain = re.sub(r"//[^\n]*|std::(?:u?int\d+|size)_t|\w+::(?=k[A-Z])", "", written)
    plain = re.sub(r"(?<=\d)'(?=\d)", "", plain).replace("{", "(").replace("}", ")")
    plain = re.sub(r"\b(\d+|0x[\da-fA-F]+)(?:[uU]?[lL]{0,2}|[lL]{1,2}[uU]?)\b", r"\1", plain)

    def of(node):
        if isinstance(node, ast.Expression):
            return of(node.body)
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](of(node.operand))
        if isinstance(node, ast.Name):
            (value,) = values_of(node.id, known, deep + 1)
            return value
        raise ValueError

    try:
        return of(ast.parse(plain.replace("/", "//").strip(), mode="eval"))
    except (SyntaxError, ValueError, ZeroDivisionError, TypeError):
        return None


def named_constants_have_their_figure():
    """A figure beside a constant's name is its value."""
    known = definitions()
    program = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
    for file, words in pages_and_comments():
        if file.suffix == ".md":
            words = program.sub(lambda match: "\n" * match[0].count("\n"), words)
        for claim in CLAIMS:
            for number, match in lines_with(claim, words):
                values = values_of(match["name"], known)
                said = float(re.sub(r"[ ',]", "", match["figure"])) * UNITS[match["unit"]]
                place = f"{short(file)}:{number}: {match['name']}"
                if not values:
                    yield f"{place}: say no figure, since no program can tell what it is"
                elif said not in values:
                    yield f"{place} is {' or '.join(map(str, sorted(values)))}, not {said:.0f}"
