#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The section CALLS of the manual pages of cards: each call's prototype, and what its header says.

    card_calls.py            says which pages differ from the headers; exit code 1 if any does
    card_calls.py --write    writes the section
    card_calls.py --names    prints the calls' names
"""

import os
import pathlib
import re
import sys
import textwrap

SOURCE = pathlib.Path(os.environ.get("RMEM_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BEGIN = '.\\" Made of the headers by tests/support/card_calls.py --write; change it there.\n'
END = '.\\" The end of that.\n'
# A comment, a directive, or what ends with a semicolon.
PART = re.compile(
    r"/\*(?P<comment>.*?)\*/|^#(?:[^\n]*\\\n)*[^\n]*$"
    r"|(?P<call>(?:typedef [^;{]*|STDRFM2GCALL|char\*|\w+_API [^;(]*?)\s*\(?[\w*]+\)?\([^;]*\));",
    re.DOTALL | re.MULTILINE,
)


def sentences(comment):
    """Running text, each sentence on lines of its own; an indented line is a paragraph."""
    said = [line.strip().lstrip("*")[1:] for line in comment.strip().split("\n")]
    said[0] = comment.strip().split("\n")[0]
    text = "\n".join(f"\0{line.strip()}" if line.startswith("  ") else line for line in said)
    lines = []
    for paragraph in text.replace("\\", "\\e").split("\0"):
        lines.append(".Pp")
        for sentence in re.split(r"(?<=[.!?…]) (?=\S)", " ".join(paragraph.split())):
            for line in textwrap.wrap(sentence, 80, break_on_hyphens=False):
                lines.append(f"\\&{line}" if line[0] in ".'" else line)
    return lines


def declaration(call):
    """As a program's author writes it."""
    call = re.sub(r"^\w+_API ", "", call).replace("STDRFM2GCALL", "RFM2G_STATUS")
    arguments = [one.replace(" ", "\xa0") for one in " ".join(call.split()).split(", ")]
    lines = textwrap.wrap(", ".join(arguments) + ";", 76, subsequent_indent="    ")
    return [line.replace("\xa0", " ") for line in lines]


def section(headers):
    lines = [".Sh CALLS"]
    heading, comment, group = [], None, []

    def end_group():
        nonlocal comment, group, heading
        if group:
            lines.extend([*heading, ".Bd -literal", *group, ".Ed"])
            heading = []
            lines.extend(sentences(comment) if comment else [])
        comment, group = None, []

    for text in (header.read_text(encoding="utf-8") for header in headers):
        is_among_calls = "/* ----" not in text
        for part in PART.finditer(text):
            said, call = part["comment"], part["call"]
            if said or text[: part.start()].endswith("\n\n"):
                end_group()
            if said and said.lstrip().startswith("----"):
                title, _, rest = said.lstrip()[4:].partition(".")
                heading = [f".Ss {' '.join(title.replace('*', ' ').split())}"]
                heading += sentences(rest)[1:] if rest.strip() else []
                is_among_calls = True
            elif said:
                comment = said
            elif call and is_among_calls:
                group += declaration(call)
        end_group()
    return "\n".join(lines) + "\n"


def main(words):
    failed = 0
    for folder in sorted(map.parent for map in SOURCE.glob("cards/*/exports.map")):
        headers = sorted(folder.glob("*.h"))
        if "--names" in words:
            calls = (m["call"] for h in headers for m in PART.finditer(h.read_text("utf-8")))
            calls = (call for call in calls if call and not call.startswith("typedef"))
            print("\n".join(re.search(r"\w+(?=\()", call)[0] for call in calls))
            continue
        file = SOURCE / f"docs/man/{folder.name}.7"
        page = file.read_text(encoding="utf-8")
        made = BEGIN + section(headers) + END
        had = re.search(re.escape(BEGIN) + ".*?" + re.escape(END), page, re.DOTALL)
        if "--write" in words:
            if had:
                page = page.replace(had[0], made)
            else:
                place = re.search(r"^\.Sh (ENVIRONMENT|EXAMPLES)", page, re.MULTILINE).start()
                page = page[:place] + made + page[place:]
            file.write_text(page, encoding="utf-8")
        elif not had or had[0] != made:
            print(f"FAILED: {file.name} has other calls than cards/{folder.name}/*.h")
            print("tests/support/card_calls.py --write mends it")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
