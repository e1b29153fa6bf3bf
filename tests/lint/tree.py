# SPDX-License-Identifier: Apache-2.0
"""The files of the tree, for the rules."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = {".hpp", ".h"}
CODE = {".cpp", ".c"} | HEADERS
SCRIPTS = {".py", ".sh", ".cmake"}


class Skip(Exception):
    """The rule cannot be checked here; the text says why."""


def all_files():
    """Every file of the tree, without what is built or hidden (but with the CI's files)."""
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = sorted(
            s for s in subfolders if s == ".ci" or not s.startswith(".") and s != "build"
        )
        for name in sorted(names):
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
