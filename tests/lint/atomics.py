# SPDX-License-Identifier: Apache-2.0
"""The rules of operations on atomics."""

import re

from tree import CODE, COMMENT_OR_LITERAL, files, short, text

ORDER = r"(?:memory_order(?:_|::)|__ATOMIC_)"
ORDERED = re.compile(ORDER + r"(acquire|release|acq_rel|seq_cst)\b", re.IGNORECASE)
RELAXED = re.compile(ORDER + r"relaxed\b", re.IGNORECASE)
NUMBER = re.compile(r"(?:(?P<file>[\w./]+\.(?:hpp|cpp|h)) )?(?<!\w)\((?P<number>\d+)\)")


def split_comment(line):
    """The code of a line, and its comment."""
    if line.lstrip().startswith(("//", "/*", "* ")):
        return "", line.lstrip(" /*")
    parts = re.split(r"//|/\*", line, maxsplit=1)
    return parts[0], parts[1] if len(parts) > 1 else ""


class Operations:
    """The statements of a file that name a memory order, with the comments that belong to them.

    A statement's comment is what stands on its own lines and in the comment directly above it.
    """

    def __init__(self, file):
        self.lines = [split_comment(line) for line in text(file).splitlines()]

    def statements(self):
        """(line number, code, comment, comment of the paragraph) of each."""
        at = 0
        while at < len(self.lines):
            first, last = at, at
            while last + 1 < len(self.lines) and self._goes_on(last):
                last += 1
            code = " ".join(c for c, _ in self.lines[first : last + 1])
            if ORDERED.search(code) or RELAXED.search(code):
                line = next(
                    n
                    for n in range(first, last + 1)
                    if ORDERED.search(self.lines[n][0]) or RELAXED.search(self.lines[n][0])
                )
                own = " ".join(c for _, c in self.lines[first : last + 1])
                above = self._comment_above(first)
                yield line + 1, code, f"{above} {own}", f"{self._paragraph_above(first)} {own}"
            at = last + 1

    def _goes_on(self, at):
        code = self.lines[at][0].strip()
        return code != "" and not code.startswith("#") and code[-1] not in ";{}:"

    def _comment_above(self, first):
        at = first - 1
        while at >= 0 and self.lines[at][0] == "" and self.lines[at][1].strip():
            at -= 1
        return " ".join(c for _, c in self.lines[at + 1 : first])

    def _paragraph_above(self, first):
        """The nearest comment above that no empty line divides from the statement."""
        at = first - 1
        while at >= 0 and self.lines[at][0].strip():
            at -= 1
        return self._comment_above(at + 1)


# Folders whose atomics say what they are for.
SCOPE = (
    "billboard",
    "bridge",
    "cards",
    "mpi_channel",
    "ports",
    "remote",
    "rmem",
    "simulator",
    "tools",
)


# What a user's program does, by the hooks that it is linked with: its partner is the program's.
NOT_OURS = "rmem/instrumented/"


def code_with_atomics():
    return [
        f
        for f in files(*CODE)
        if short(f).split("/")[0] in SCOPE and not short(f).startswith(NOT_OURS)
    ]


def directions(code):
    """What the operation's orders do: publish, observe, or both."""
    orders = {order.lower() for order in ORDERED.findall(code)}
    publishes = {"release", "acq_rel", "seq_cst"} & orders
    observes = {"acquire", "acq_rel", "seq_cst"} & orders
    return ({"publish"} if publishes else set()) | ({"observe"} if observes else set())


def ordered_atomics_name_their_partner():
    """Each acquire, release, acq_rel and seq_cst has a number and names the one it pairs with."""
    operations = {}  # (file, number) -> (line, directions, the (file, number)s named)
    for file in code_with_atomics():
        for line, code, comment, _ in Operations(file).statements():
            if not ORDERED.search(code):
                continue
            place = f"{short(file)}:{line}"
            numbers = list(NUMBER.finditer(comment))
            own = next((m for m in numbers if not m["file"]), None)
            if own is None:
                yield f"{place}: number it and name its partner, `// (1) pairs with (2): …`"
                continue
            key = (short(file), own["number"])
            if key in operations:
                yield f"{place}: ({own['number']}) is taken by line {operations[key][0]}: renumber"
                continue
            named = {(find_file(m["file"], file), m["number"]) for m in numbers if m is not own}
            operations[key] = (line, directions(code), named)

    for (file, number), (line, own_directions, named) in operations.items():
        place = f"{file}:{line}"
        if not named:
            yield f"{place}: say which operation ({number}) pairs with, as (2) or `file.hpp (2)`"
        for other in named - set(operations):
            yield f"{place}: ({number}) names {other[0]} ({other[1]}), which is not there"
        for other in named & set(operations):
            if (file, number) not in operations[other][2]:
                where = f"{other[0]}:{operations[other][0]}: ({other[1]})"
                yield f"{where} is named by {file} ({number}): name it as well"
        partners = [operations[other][1] for other in named & set(operations)]
        if partners and not any(fits(own_directions, partner) for partner in partners):
            yield f"{place}: ({number}) needs a partner to acquire what it releases, or the reverse"


def fits(one, other):
    return "publish" in one and "observe" in other or "observe" in one and "publish" in other


def find_file(name, near):
    """The file a comment means: its own, a path from the root, or a name in its own folder."""
    if not name:
        return short(near)
    return name if "/" in name else short(near.with_name(name))


REASON = re.compile(r"\benough\b[^.]*?[:,]\s*\W?\w", re.IGNORECASE)
NO_REASON = re.compile(r"\benough: (a hint|a number)\W*$", re.IGNORECASE)


def relaxed_atomics_say_why_that_is_enough():
    """Each operation that is only relaxed says in the comment of its paragraph why it is enough.

    That it is a hint or a number says its type (rmem/base/relaxed.hpp).
    """
    for file in code_with_atomics():
        for line, code, comment, paragraph in Operations(file).statements():
            place = f"{short(file)}:{line}"
            if ORDERED.search(code):
                continue
            if not REASON.search(f"{comment} {paragraph}"):
                yield f"{place}: say why it may be, `// relaxed is enough: …`"
            elif NO_REASON.search(comment):
                yield f"{place}: use a Hint or a Counter (rmem/base/relaxed.hpp)"


# A variable, an array of them, or a reference; what is a pointer or a function is used otherwise.
ATOMIC = re.compile(
    r"\batomic(?:_ref)?\s*<(?:[^<>;]|<[^<>;]*>)*>(?P<array>,[^<>;()]*>)?(?:\s*&|\s)\s*"
    r"(?P<name>(?:\w+::)*\w+)\b(?!\()(?P<more>[^;()]*)"
)
CALL = re.compile(
    r"(?P<on>\w*)(?:\[[^][]*\])?(?:\.|->)"
    r"(?P<call>load|store|exchange|wait|fetch_\w+|compare_exchange_\w+)\("
)
INDEX = r"\[[^][]*\]"


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def code_only(code):
    """The code with blanks for its comments and literals, on its lines."""
    return COMMENT_OR_LITERAL.sub(lambda m: m[0] if m[0][0].isalnum() else blank(m), code)


def uses_of_atomics(codes):
    """Name -> how one atomic is written, for the names that nothing else has in these files."""
    uses = {}
    for code in codes:
        for match in ATOMIC.finditer(code):
            more = re.sub(r"\{[^{}]*\}", "", match["more"])
            is_array = match["array"] or more.lstrip().startswith("[")
            for name in [match["name"].split("::")[-1], *re.findall(r",\s*(\w+)", more)]:
                uses[name] = rf"\b{name}{INDEX}" if is_array else rf"\b{name}\b"
    declared = re.compile(
        rf"(?:,|(?:\w|>)(?<!\breturn)(?<!\belse)(?<!\bcase)[&*]*\s)\s*[&*]*({'|'.join(uses)})"
        r"\b(?=\s*[=;,{)([:])"
    )
    for code in codes if uses else ():
        for name in declared.findall(ATOMIC.sub("", code)):
            uses.pop(name, None)
    return uses


def arguments(code, at):
    """What stands in the brackets that open at `at`."""
    depth = 0
    for end in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        if depth == 0:
            break
    return code[at + 1 : end]


def atomics_say_their_order():
    """An atomic is used by calls that name an order: operators and defaults are silent about it.

    Operators are seen on names that only atomics have, in the tree or in the file and its header.
    """
    codes = {file: code_only(text(file)) for file in code_with_atomics()}
    everywhere = uses_of_atomics(codes.values())
    for file, code in codes.items():
        own = [codes[f] for f in {file, file.with_suffix(".hpp")} if f in codes]
        uses = everywhere | uses_of_atomics(own)
        offences = []
        for match in CALL.finditer(code):
            said, call = arguments(code, match.end() - 1), match["call"]
            is_one = match["on"] in uses or "_" in call or call == "load" and not said
            if is_one and not re.search(r"memory_order|kRelaxed", said):
                offences.append((match.start(), f"`{call}` names no order"))
        if uses:
            one = rf"(?:{'|'.join(uses.values())})"
            implicit = re.compile(
                rf"(?:\+\+|--)(?:\w+(?:\.|->))*{one}(?!\s*[.(\[]|->)"
                rf"|{one}\s*(?:[-+|&^]?=(?!=)|\+\+|--)"
                rf"|(?:\breturn|[!=]=|&&|\|\||!|[(?])\s*(?:\w+(?:\.|->))*{one}\s*"
                r"(?=[;)?]|[!=<>]=|&&|\|\||[<>+-] )"
            )
            for match in implicit.finditer(ATOMIC.sub(blank, code)):
                said = " ".join(match[0].split())
                offences.append((match.end(), f"`{said}`: write load or store, with its order"))
        for at, what in offences:
            line = code.count("\n", 0, at) + 1
            yield f"{short(file)}:{line}: {what}"
