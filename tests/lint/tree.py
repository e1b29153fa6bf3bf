# SPDX-License-Identifier: Apache-2.0
"""The files of the tree, for the rules."""

import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = {".hpp", ".h"}
CODE = {".cpp", ".c"} | HEADERS
SCRIPTS = {".py", ".sh", ".cmake"}
OTHER_CODE = {".lua", ".f90"}


class Skip(Exception):
    """The rule cannot be checked here; the text says why."""


def all_files():
    """Every file of the tree, without what is built or hidden (but with the CI's files)."""
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = sorted(
            s for s in subfolders if s == ".ci" or not s.startswith(".") and s != "build"
        )
        for name in sorted(names):
            if name != ".git":  # in a worktree, a file
                yield pathlib.Path(folder, name)


def files(*suffixes):
    return [f for f in all_files() if f.suffix in suffixes]


def short(file):
    return file.relative_to(ROOT).as_posix()


def text(file):
    return file.read_text(encoding="utf-8", errors="replace")


def is_script(file):
    return file.suffix in SCRIPTS or not file.suffix and text(file).startswith("#!")


def run(command):
    """Runs a tool from the root of the tree; returns whether it was content, and what it said."""
    result = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return result.returncode == 0, result.stdout + result.stderr


COMMENT_OR_LITERAL = re.compile(
    r"(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)"
    r'|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|\b\d[\w.']*|'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)


def comments_only(code):
    """The code with nothing but its comments, on their lines; their marks are blanks."""
    lines = []
    at = 0
    for match in COMMENT_OR_LITERAL.finditer(code):
        if match["comment"]:
            lines += [re.sub(r"[^\n]", " ", code[at : match.start()]), match["comment"]]
            at = match.end()
    return re.sub(r"(?m)^(\s*)(?://+<?|/\*+|\*)", r"\1", "".join(lines))
