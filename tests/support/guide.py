#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs that the guides print are whole, compile and run as printed, and give what is shown.

    guide.py [PAGE...]      all pages of docs/guide, and README.md, unless some are named

A page is read like this:
  - A block whose first line is a comment with a file's name, `/* hello.c */`, is that file. Every
    block with a main function has one.
  - All other blocks of sh are run as they stand, one after the other in one shell, in a folder that
    has the page's files and looks like the tree. Each command must end well, also one before a
    pipe or in the background; one that is in the background still at the end is ended.
  - A block of text right below is what it prints, on stdout and stderr. A line `…` stands for any
    lines, in a line it stands for a part. Names of rings that nobody chose differ from run to run.
A comment right above the sh block says what else there is to know:
    <!-- run: numbers vary -->       numbers, and how wide they are, are not compared
    <!-- run: in any order -->       the lines come in any order
    <!-- run: output varies -->      it is run, what it prints is not compared
    <!-- run: fails -->              it is to show an error, and ends with one
    <!-- run: needs PROGRAM -->      left out, and said so, where that is not installed
    <!-- not run: WHY -->            left out, and said so
Several are divided by commas. Programs are compiled with -O2. RMEM_SOURCE_DIR and RMEM_BUILD_DIR
say where things are. Exit code 77: nothing is built.
"""

import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["RMEM_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["RMEM_BUILD_DIR"])
LIBRARIES = {"rmem": "rmem", "rmem-maps": "maps", "billboard": "billboard"} | {
    lists.parent.name: str(lists.parent.relative_to(SOURCE))
    for lists in [*SOURCE.glob("ports/*/CMakeLists.txt"), *SOURCE.glob("cards/*/CMakeLists.txt")]
}
PATIENCE_S = 180
WARNINGS = "-Wall -Wextra -Werror"
PASSED_ON = ["examples", "mpi_channel", "scripts", "cards", "bench"]  # of the tree, in each folder

# Before the blocks of a page. A command in the background counts when it ends: where the page waits
# for all, or at the end of the page, where what runs on is told to end.
PRELUDE = """
set -eo pipefail
started=() newest=
note() { [[ ${!:-} == "$newest" ]] || { newest=$!; started+=("$!"); }; }
trap note DEBUG
wait() {
    note
    [[ $# == 0 ]] || { builtin wait "$@"; return; }
    for one in "${started[@]}"; do builtin wait "$one" || [[ $? == 143 ]]; done  # 143: told to end
    started=()
}
place_files() { [[ $PWD == "$PAGE" ]] || cp -n "$PAGE"/*.* . 2>/dev/null || true; }
PAGE=$PWD
finish() {
    code=$?
    trap - DEBUG
    note
    for one in "${started[@]}"; do
        kill "$one" 2>/dev/null && is_ended=yes || is_ended=no
        builtin wait "$one" || [[ $is_ended == yes ]] || {
            echo "a command in the background has failed"
            code=1
        }
    done
    exit "$code"
}
trap finish EXIT
"""

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```\n", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- (run|not run): ([^>]*?) -->\n\s*\Z", re.DOTALL)
FILE_NAME = re.compile(r"\A(?:/\*|//|#) (\S+\.\w+)(?: \*/)?\n")
CHANCE_RING = re.compile(r"\b(?:run-\d+-[0-9a-f]+|default-\d+|guide-\d+-\w+)")


class Wrong(Exception):
    """What is wrong with a page; the text says it."""


class Block:
    """A fenced block, and the comment above it."""

    def __init__(self, page, match):
        above = page[: match.start()]
        mark = MARK.search(above)
        self.language = match[2]
        self.text = re.sub(f"^{match[1]}", "", match[3], flags=re.MULTILINE)
        self.line = above.count("\n") + 1
        self.start, self.end = match.span()
        self.is_run = not mark or mark[1] == "run"
        self.words = mark[2].split(", ") if mark and self.is_run else []
        self.why_not = None if self.is_run else " ".join(mark[2].split())

    def needs(self):
        return [word.split()[1] for word in self.words if word.startswith("needs ")]


def read_page(file):
    """The files that a page has, and its blocks of commands.

    Each block comes with the output that is shown (or None).
    """
    page = file.read_text(encoding="utf-8")
    blocks = [Block(page, match) for match in FENCE.finditer(page)]
    files = {}
    for block in blocks:
        name = FILE_NAME.match(block.text)
        if name:
            files[name[1]] = block.text
        elif block.language in ("c", "cpp") and re.search(r"\bmain\(", block.text):
            raise Wrong(f"line {block.line}: a program without its file's name in the first line")
    programs = {pathlib.Path(f).stem for f in files if f.endswith((".c", ".cpp"))}
    runs, run_programs = [], set()
    for block, below in zip(blocks, blocks[1:] + [None]):
        if block.language != "sh" or FILE_NAME.match(block.text):
            continue
        run_programs |= set(re.findall(r"(?<![\w/.])\./(\w+)", block.text))
        shown = None
        if below and below.language == "text" and not page[block.end : below.start].strip():
            shown = below.text
        runs.append((block, shown))
    if programs - run_programs:
        raise Wrong(f"no command on the page starts {', '.join(sorted(programs - run_programs))}")
    return files, runs


# ---- Running


def make_tools(work):
    """As an installation would have them: commands in bin, and what pkg-config finds."""
    (work / "bin").mkdir()
    has_mpi = (BUILD / "mpi_channel/libbbp-fi.so").exists()
    launchers = SOURCE.glob("mpi_channel/mpirun-bbp-*") if has_mpi else []
    compilers = BUILD.glob("rmem/rmem-c[c+]*")
    for command in [BUILD / "tools/rmem", *compilers, *launchers]:
        (work / "bin" / command.name).symlink_to(command)
    for compiler in ("cc", "c++", "gcc", "g++"):
        wrapper = work / "bin" / compiler
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which(compiler)} -O2 "$@"\n', encoding="utf-8")
        wrapper.chmod(0o755)
    (work / "pkgconfig").mkdir()
    found = ":".join(str(BUILD / folder) for folder in LIBRARIES.values())
    for name, folder in LIBRARIES.items():
        (work / "pkgconfig" / f"{name}.pc").write_text(
            f"Name: {name}\nDescription: of the build\nVersion: 0\n"
            f"Requires: {'rmem' if name == 'rmem-maps' else ''}\n"
            f"Cflags: {WARNINGS} -I{SOURCE} -I{SOURCE}/ports -I{SOURCE / folder}\n"
            f"Libs: -L{BUILD / folder} -l{name} -Wl,-rpath,{found}\n",
            encoding="utf-8",
        )


def environment(work, page):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RMEM_", "PMI", "OMPI_"))}
    return kept | {
        "PATH": f"{work}/bin:{kept['PATH']}",
        "PKG_CONFIG_PATH": f"{work}/pkgconfig",
        "RMEM_RING": f"guide-{os.getpid()}-{re.sub('[^a-z]', '', page)}",
        "FI_PROVIDER_PATH": f"{BUILD}/mpi_channel",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def isolation():
    """Rings of a page are its own, where a mount of its own is to be had; each has a `rig`."""
    for options in (["-m"], ["-rm"]):
        words = ["unshare", *options, "--propagation", "private", "sh", "-c"]
        words += ['mount -t tmpfs tmpfs /dev/shm && exec "$@"', "x"]
        try:
            if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode == 0:
                return words
        except FileNotFoundError:
            pass
    return []


def script_of(runs, mark):
    """The blocks, each after a line that says where it begins."""
    parts = [PRELUDE]
    for block in runs:
        text = block.text
        if "fails" in block.words:
            text = f"set +e; (set -e\n{text}); failed=$?; set -e; [[ $failed != 0 ]]"
        parts.append(f"place_files; printf '\\n%s %d\\n' {mark} {block.line}\n{text}")
    return "\n".join(parts)


def run(runs, folder, variables, alone):
    """What each block prints, by its line."""
    mark = f"guide-block-{os.getpid()}"
    with subprocess.Popen(
        [*alone, "bash", "-c", script_of(runs, mark)],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            printed, _ = shell.communicate(timeout=PATIENCE_S)
            code = shell.returncode
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGTERM)  # gently, so that rings are removed
            try:
                printed, _ = shell.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, signal.SIGKILL)
                printed, _ = shell.communicate()
            code = f"none after {PATIENCE_S} s"
    parts = re.split(rf"\n{mark} (\d+)\n", printed)
    outputs = {int(line): text for line, text in zip(parts[1::2], parts[2::2])}
    if code != 0:
        raise Wrong(f"line {list(outputs)[-1]}: exit code {code}:\n{parts[-1]}")
    return outputs


def comparable(text, words):
    """The lines of it, without what may differ."""
    text = CHANCE_RING.sub("RING", text)
    if "numbers vary" in words:
        text = re.sub(r" +", " ", re.sub(r"\d+(\.\d+)?", "#", text))
    lines = [line.rstrip() for line in text.rstrip().split("\n")]
    return sorted(lines) if "in any order" in words else lines


def is_shown(shown, printed):
    """Whether the lines printed are those shown, of which `…` stands for any, or for a part."""
    expected = "\n".join(
        ".*" if line == "…" else re.escape(line).replace("…", "[^\n]*") for line in shown
    )
    return re.fullmatch(expected, "\n".join(printed), re.DOTALL) is not None


def check_page(file, work, alone):
    """How many blocks were run, and what was left out."""
    files, runs = read_page(file)
    folder = work / file.stem
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in PASSED_ON:
        (folder / name).symlink_to(SOURCE / name)
    (folder / "build").mkdir()
    (folder / "build/release").symlink_to(BUILD)
    (folder / "home/.local/share").mkdir(parents=True)
    (folder / "home/.local/share/rmem").symlink_to(SOURCE / "tools/record")
    variables = environment(work, file.stem) | {"HOME": f"{folder}/home"}
    left_out, to_run = [], []
    for block, shown in runs:
        missing = [p for p in block.needs() if not shutil.which(p, path=variables["PATH"])]
        if missing or not block.is_run:
            why = block.why_not or f"there is no {missing[0]}"
            left_out.append(f"line {block.line}: {why}")
        else:
            to_run.append((block, shown))
    outputs = run([block for block, _ in to_run], folder, variables, alone) if to_run else {}
    for block, shown in to_run:
        printed = outputs[block.line]
        if shown is None or "output varies" in block.words:
            continue
        shown, printed = comparable(shown, block.words), comparable(printed, block.words)
        if not is_shown(shown, printed):
            difference = difflib.unified_diff(shown, printed, "shown", "printed", lineterm="")
            raise Wrong(f"line {block.line}: it prints something else:\n" + "\n".join(difference))
    return len(to_run), left_out


def main(pages):
    if not (BUILD / "tools/rmem").exists():
        print("skipped: the rmem command is not built")
        return 77
    pages = [pathlib.Path(p).resolve() for p in pages] or [
        *sorted(SOURCE.glob("docs/guide/*.md")),
        SOURCE / "README.md",
    ]
    failed, blocks, all_left_out = False, 0, 0
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        make_tools(work)
        # README.md of the root and of the guides have one stem: the latter has no program.
        pages = [p for p in pages if p != SOURCE / "docs/guide/README.md"]
        alone = isolation()
        with concurrent.futures.ThreadPoolExecutor(max_workers=4 if alone else 1) as pool:
            for page, result in [(p, pool.submit(check_page, p, work, alone)) for p in pages]:
                try:
                    count, left_out = result.result()
                    for what in left_out:
                        print(f"{page.name}: not run: {what}")
                    blocks += count
                    all_left_out += len(left_out)
                except Wrong as wrong:
                    print(f"FAILED: {page.name}: {wrong}")
                    failed = True
    print(f"{blocks} blocks of commands were run, {all_left_out} were not, for the reasons above")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
