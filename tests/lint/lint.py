#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that a program can check.

    lint.py            checks every rule
    lint.py RULE...    checks these
    lint.py --list     prints the rules' names

Each rule is one function that yields a complaint per offence: file, line, what to do. Exit code 0:
nothing to complain about, 1: complaints, 77: every rule asked for was skipped.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

import tree
from atomics import (
    atomics_say_their_order,
    ordered_atomics_name_their_partner,
    relaxed_atomics_say_why_that_is_enough,
)
from constants import named_constants_exist, named_constants_have_their_figure
from includes import own_types_are_included, standard_names_are_included
from mutants import mutants_find_their_text
from pages import named_functions_exist, without_programs
from sizes import classes_have_one_source, rooms_keep_their_size, settings_keep_their_number
from tables import (
    OTHER_FOLDERS,
    differences,
    examples_are_where_their_row_says,
    lists_name_all_links,
)
from tree import (
    CODE,
    COMMENT_OR_LITERAL,
    HEADERS,
    OTHER_CODE,
    Skip,
    all_files,
    comments_only,
    files,
    is_script,
    run,
    short,
    text,
)
from unity import own_functions_are_told_apart

MAX_LINES = 600
MAX_COLUMNS = 100


# ---- Files


def mpi_include_folders():
    """None where no MPI is installed: what includes mpi.h is not built there."""
    try:
        result = subprocess.run(
            ["pkg-config", "--cflags-only-I", "ompi-c"], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return []
    return [word[2:] for word in result.stdout.split()] if result.returncode == 0 else []


def installed_headers():
    """Those that a library's HEADERS in a CMakeLists.txt name, and every .h."""
    for file in files(".txt"):
        for names in re.findall(r"\bHEADERS ([\w./\s-]+)", text(file)):
            paths = [file.parent / name for name in names.split()]
            yield from (path for path in paths if path.suffix in HEADERS and path.is_file())
    yield from files(".h")


def headers_compile_alone():
    """What users include includes what it needs; a .h does as C and as C++. Of the other headers,
    the rules in includes.py say it in less time. So do the fuzz targets, which the one build with
    Clang alone would find broken.
    """
    cpp = [os.environ.get("CXX", "c++"), "-std=c++20", "-x", "c++"]
    c = [os.environ.get("CC", "cc"), "-std=c11", "-x", "c"]
    options = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    # As programs include the ports' headers: <fm/fm1.h>.
    options += [f"-I{tree.ROOT}", f"-I{tree.ROOT / 'ports'}"]

    mpi = ["-isystem" + folder for folder in mpi_include_folders()]

    def compile_alone(command, header):
        needs_mpi = "#include <mpi.h>" in text(header)
        if needs_mpi and not mpi:
            return header, ""
        # Through an including file, because `#pragma once` in a main file is a warning; as an empty
        # unit is, to C.
        source = f'#include "{short(header)}"\nextern int is_not_empty;\n'
        result = subprocess.run(
            [*command, *options, *(mpi if needs_mpi else []), "-"],
            input=source,
            capture_output=True,
            text=True,
            check=False,
        )
        return header, result.stderr if result.returncode else ""

    headers = sorted({*installed_headers(), *tree.ROOT.glob("fuzz/*.cpp")})
    jobs = [(cpp, h) for h in headers] + [(c, h) for h in headers if h.suffix == ".h"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for header, errors in pool.map(lambda job: compile_alone(*job), jobs):
            if errors:
                yield f"{short(header)}:1: include what it needs to compile alone:\n{errors}"


def files_start_with_their_licence():
    """One SPDX line at the top, in place of a page of text."""
    for file in all_files():
        if file.suffix in CODE or is_script(file) or file.name == "CMakeLists.txt":
            if "SPDX-License-Identifier: Apache-2.0" not in "".join(text(file).splitlines()[:3]):
                yield f"{short(file)}:1: begin with `SPDX-License-Identifier: Apache-2.0`"


def the_root_holds_what_it_must():
    """What a script leaves there by mistake is noticed by nobody."""
    known = {"LICENSE", ".clang-format", ".clang-tidy", ".editorconfig", ".gitignore"}
    for file in all_files():
        if "/" not in short(file) and file.name not in known:
            if file.suffix not in (".md", ".txt", ".json"):
                yield f"{short(file)}:1: remove it from the root, or name it here"


def files_hold_no_machine_paths():
    """What lies below somebody's own folders exists on no other machine."""
    machine_path = re.compile(r"(?<![\w.}/])/(?:work|root|home)/")
    for file in all_files():
        for number, line in enumerate(text(file).splitlines(), 1):
            if machine_path.search(line):
                yield f"{short(file)}:{number}: use a path relative to the tree"


def first_include(file):
    """The file of the tree that this one begins with; None where the system's is first."""
    first = re.search(r"^#include.*", text(file), re.MULTILINE)
    named = first and re.fullmatch(r'#include "(.*)"', first[0])
    path = named and tree.ROOT / named[1]
    return path if path and path.exists() else None


def invariants_are_executed():
    """A header that says Invariants has an RMEM_CHECK, or a source of it has.

    Its sources are those that begin with it, or with a header that does. What no check can execute
    is called otherwise.
    """
    claim = re.compile(r"(?m)^[ \t]*///.*\bInvariants?\b")
    sources = {}
    for source in files(".cpp"):
        header = first_include(source)
        while header:
            sources.setdefault(header, []).append(source)
            header = first_include(header)
    for header in files(*HEADERS):
        if not (said := claim.search(text(header))):
            continue
        parts = (COMMENT_OR_LITERAL.sub(" ", text(f)) for f in [header, *sources.get(header, [])])
        if not any(re.search(r"\bRMEM_CHECK(?:_IF)?\(", part) for part in parts):
            number = text(header).count("\n", 0, said.start()) + 1
            yield f"{short(header)}:{number}: execute it with RMEM_CHECK, or say what it is instead"


def open_ends_name_an_issue():
    """A TO DO without an issue is forgotten."""
    open_end = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\(#\d+\))")
    for file in all_files():
        if file.suffix in CODE or is_script(file):
            for number, line in enumerate(text(file).splitlines(), 1):
                if match := open_end.search(line):
                    yield f"{short(file)}:{number}: do it, or write {match[0]}(#<issue>)"


def tests_mirror_the_tree():
    """tests/<folder>/ tests <folder>/, so that one finds the tests of a file and the reverse."""
    exempt = {"lint", "consumer", "support"}
    for file in files(".cpp", ".c", ".py", ".sh"):
        parts = file.relative_to(tree.ROOT).parts
        if parts[0] != "tests" or parts[1] in exempt:
            continue
        folder = tree.ROOT.joinpath(*parts[1:-1])
        if len(parts) == 2 or not folder.is_dir():
            yield f"{short(file)}:1: move it to where it mirrors a folder of the tree"
        elif "_test." not in file.name:
            yield f"{short(file)}:1: name it <what>_test{file.suffix}, or move it to tests/support/"


def processes_of_tests_are_children():
    """A Child is killed with its parent, and says how it ended; so nothing else forks."""
    home = "tests/support/child.hpp"
    for file in files(*CODE):
        if not short(file).startswith("tests/") or short(file) == home:
            continue
        code = COMMENT_OR_LITERAL.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text(file))
        for number, line in enumerate(code.splitlines(), 1):
            if re.search(r"\b(?:v?fork|forkpty)\s*\(", line):
                yield f"{short(file)}:{number}: let a Child do it ({home})"


# What gives a descriptor. rmem/recording is of programs of our own, as remote/ is of programs
# elsewhere.
OPENING = re.compile(
    r"(?<![\w>])::(?:open|openat|socket|accept4?|pipe2?|socketpair|dup|eventfd|timerfd_create|"
    r"signalfd|epoll_create1?|inotify_init1?|memfd_create|shm_open|mkostemp|pidfd_open)\("
    r"|SYS_userfaultfd"
)
IN_OTHERS_PROCESSES = ("rmem/", "billboard/", "cards/", "ports/", "mpi_channel/", "bridge/")


def descriptors_are_above_the_standard_streams():
    """A Descriptor is; one that is given away goes through above_standard_streams()."""
    for file in files(".cpp", ".hpp"):
        name = short(file)
        if not name.startswith(IN_OTHERS_PROCESSES) or name.startswith("rmem/recording/"):
            continue
        code = COMMENT_OR_LITERAL.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text(file))
        for call in OPENING.finditer(code):
            begin = max(code.rfind(end, 0, call.start()) for end in ";{}")
            rest = code[begin : code.find("\n\n", call.end())]
            member = re.search(r"\w+_(?=\($)", code[begin : call.start()])
            kept = rf"Descriptor\b[^;]*\b{member[0]}[,;]" if member else r"(?!)"
            header = file.with_suffix(".hpp")
            known = code + (text(header) if header.exists() else "")
            is_good = re.search(r"Descriptor|above_standard_streams", rest)
            is_good = is_good or re.search(kept, known)
            if name != "rmem/base/descriptor.cpp" and not is_good:
                number = code.count("\n", 0, call.start()) + 1
                yield f"{name}:{number}: give it to a Descriptor (rmem/base/descriptor.hpp)"


# Where a file belongs, and what it may include beside its own: `rooms: others`, and what those may.
# A room is a folder (with those of its own that are not named here), a file without its suffix, or
# a file; what is divided by `|` does not see each other, nor do the folders that `*` stands for. A
# row names rows before it.
LAYERS = (
    "rmem/base rmem/codes.h rmem/error rmem/version.h:",
    "rmem/wire: rmem/base",
    "rmem/ring: rmem/wire",
    "rmem/link: rmem/ring",
    "rmem/link/direct | rmem/link/ring | rmem/link/udp/protocol: rmem/link",
    "rmem/link/carrier: rmem/base",
    "rmem/link/fabric: rmem/link/carrier rmem/link/udp/protocol",
    "rmem/link/udp: rmem/link/fabric",
    "rmem/sim: rmem/ring",
    "rmem/link/sim: rmem/link rmem/sim",
    "rmem/recording: rmem/ring",
    "rmem/stores: rmem/link",
    "rmem: rmem/stores rmem/link/direct rmem/link/ring rmem/link/udp rmem/link/sim",
    "maps: rmem",
    "remote: rmem",
    "bridge: rmem/stores rmem/link/udp/protocol",
    "cards/common: rmem",
    "cards/rfm2g: cards/common remote",
    "cards/*: cards/common",
    "billboard/boards: rmem/link",
    "billboard/bbp.h billboard/endpoint.hpp billboard/environment billboard/errors:"
    " billboard/boards",
    "billboard/core: billboard/endpoint.hpp rmem/link/direct rmem/link/ring rmem/link/udp"
    " rmem/link/sim",
    "billboard/process: billboard/core",
    "billboard: billboard/process rmem",
    "ports/common: billboard/core",
    "ports/fm | ports/gamma | ports/dp: ports/common billboard/process",
    "ports/munet: ports/gamma",
    "mpi_channel: billboard/core",
    "mpi_channel/device: mpi_channel",
    "mpi_channel/collectives: mpi_channel/device",
    "mpi_channel/fm: mpi_channel/device ports/fm",
    "mpi_channel/provider: mpi_channel/collectives mpi_channel/fm",
    "simulator/hunt: billboard",
    "simulator: simulator/hunt mpi_channel/device",
    "tools: rmem",
    "tools/watch: tools bridge maps ports/dp ports/fm ports/munet",
    "tools/measure: tools billboard/endpoint.hpp",
    "tools/run: tools/watch",
    "tools/conform: tools/measure cards/common",
    "tools/doctor: tools/run",
    "tools/map: tools maps",
    "tools/node: tools/run cards/common",
    "tools/record: tools/watch rmem/recording",
    "tools/serve: tools cards/common remote",
    "tools/sim: tools/measure simulator",
    "tools/bridge: tools/node tools/record bridge remote",
    "bench: tools/measure billboard cards/rfm2g mpi_channel/provider ports/dp ports/munet",
)


EXAMPLES_OF_PATHS = {"CONTRIBUTING.md"}


def layers():
    """What names a room -> all that it may include."""
    known = {}
    for row in LAYERS:
        rooms, _, others = row.partition(":")
        below = set(others.split()).union(*(known[other] for other in others.split()))
        for side in rooms.split("|"):
            known.update(dict.fromkeys(side.split(), below | set(side.split())))
    return known


def room_of(path, known):
    """That of a path, by the longest name that fits, and its row's name; None outside of all."""
    path = pathlib.PurePosixPath(path)
    for name in [path, path.with_suffix(""), *path.parents]:
        for row in (str(name), f"{name.parent}/*"):
            if row in known:
                return str(name), row
    return None, None


def includes_go_down():
    """A file includes what its room may (LAYERS)."""
    known = layers()
    include = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]')
    for file in files(*CODE):
        own, row = room_of(short(file), known)
        if own is None:
            continue
        below = known[row] - {row} | {own}
        for number, line in enumerate(text(file).splitlines(), 1):
            if not (match := include.match(line)):
                continue
            # Ports' headers are found from ports/, too.
            places = (folder + match[1] for folder in ("", "ports/"))
            others = (room_of(p, known)[0] for p in places if (tree.ROOT / p).exists())
            if (other := next(others, None)) and other not in below:
                yield f"{short(file)}:{number}: {own} may not include {other} ({match[1]}): LAYERS"


def named_paths_exist():
    """A path in a comment or a page leads somewhere. (Dated measurements are of their day.)"""
    folders = "|".join(sorted({name.split("/")[0] for name in layers()} | OTHER_FOLDERS))
    endings = "hpp|cpp|h|c|py|sh|md|cmake|lua"
    path = re.compile(rf"(?<![\w/.<\"-])((?:{folders})/[\w/.-]+\.(?:{endings}))\b(?![*-])")
    for file in all_files():
        name = short(file)
        is_history = name.startswith("docs/measurements/") and re.search(r"\d", name)
        if file.suffix not in CODE | {".md"} or is_history or name in EXAMPLES_OF_PATHS:
            continue
        for number, line in enumerate(text(file).splitlines(), 1):
            for match in path.finditer(line):
                # Ports' headers are found from ports/, too.
                places = (tree.ROOT / folder / match[1] for folder in ("", "ports"))
                if "DATE" not in match[1] and not any(place.exists() for place in places):
                    yield f"{name}:{number}: there is no {match[1]}"


def tables_list_what_is_there():
    """Those of folders, layers and threads, in README.md and docs/ARCHITECTURE.md."""
    yield from differences(layers())


def no_file_is_longer_than_600_lines():
    """A longer one has more than one subject."""
    for file in all_files():
        if file.suffix in CODE or is_script(file):
            lines = len(text(file).splitlines())
            if lines > MAX_LINES:
                yield f"{short(file)}:{lines}: divide it, {MAX_LINES} lines are the limit"


def lines_have_at_most_100_columns():
    """Longer ones do not stand side by side, nor in a mail. (Tables and programs of a page may.)"""
    for file in all_files():
        is_page = file.suffix == ".md" and not short(file).startswith("docs/measurements/")
        is_code = file.suffix in CODE | OTHER_CODE or is_script(file)
        if is_code or file.name == "CMakeLists.txt" or is_page:
            lines = without_programs(text(file)) if is_page else text(file)
            for number, line in enumerate(lines.splitlines(), 1):
                is_table = is_page and line.lstrip().startswith("|")
                if len(line) > MAX_COLUMNS and not is_table:
                    yield f"{short(file)}:{number}: wrap it, {len(line)} columns are too many"


def headings_look_alike():
    """A section's heading is four dashes and its name: `// ---- Receiving`."""
    heading = re.compile(r"^[ \t]*(?://|#|/\*) ?(?:-{2,}|={3,}) [A-Z`].*", re.MULTILINE)
    well_formed = re.compile(r"\s*(?://|#|/\*) ---- .*?[^-=\s](?: \*/)?")
    for file in all_files():
        if file.suffix in CODE or is_script(file) or file.name == "CMakeLists.txt":
            code = text(file)
            for match in heading.finditer(code):
                if not well_formed.fullmatch(match[0]):
                    line = code.count("\n", 0, match.end()) + 1
                    yield f"{short(file)}:{line}: write four dashes and the section's name alone"


def own_includes_come_first():
    """The own header, others of the tree, then those of other packages, then the standard's."""
    for file in files(*CODE):
        others = False
        for number, line in enumerate(text(file).splitlines(), 1):
            others |= line.startswith("#include <")
            if others and line.startswith('#include "'):
                yield f"{short(file)}:{number}: include it before those in <>"
            if others and line and not line.startswith("#include"):
                break


# ---- Words

# Archaic words; those of the last column of docs/glossary.md that have no other meaning here; and
# relative clauses where a sentence wants a noun.
OLD_WORDS = re.compile(
    r"(?<![-\w])(?:lest|for\s+(?:want\s+of|ever)|in\s+vain|midst|whoever|good-bye|till|dear|shall"
    r"|bystanders?|sponsors?|sponsored|bur(?:y|ies|ied|ying)|repair(?:s|ed|ing)?|trains?|sights?"
    r"|visitors?|usual\s+thread|life(?!\s+cycle)|lives"
    r"|former\s+sel(?:f|ves)|anew|(?:by|for|from|of|than|to|with)\s+who"
    r"|cannot\s+be(?=\s*[;,.:(])|so\s+(?:many|much)(?!\s+(?:that|as)\b))(?![-\w])"
    r"|(?<=[.;]\s)(?:Who|Whose|Whom)\b(?![^.;]*\?)",
    re.IGNORECASE,
)
FORMER_NAMES = ("docs/glossary.md", "CHANGELOG.md")
TEST_NAME = re.compile(r"\bTEST(?:_[FP])?\(\s*\w+,\s*(\w+)\s*\)")


def texts_only(code):
    """The code with nothing but its string literals, on their lines; pieces become one text."""
    lines = []
    at = 0
    for match in COMMENT_OR_LITERAL.finditer(code):
        if match[0].endswith('"'):
            lines += [re.sub(r"[^\n]", " ", code[at : match.start()]), " " + match[0][1:-1] + " "]
            at = match.end()
    return re.sub(r"\\n", "  ", "".join(lines))


def names_of_tests(code):
    """The sentences that name tests, on their lines."""
    lines = []
    at = 0
    for match in TEST_NAME.finditer(code):
        lines += ["\n" * code.count("\n", at, match.start(1)), " " + match[1].replace("_", " ")]
        at = match.start(1)
    return "".join(lines)


def words_are_plain():
    """Comments, pages and texts use words of today. (Dated measurements and former names stay.)"""
    for file in all_files():
        name = short(file)
        is_page = file.suffix == ".md" or name.startswith("docs/man/")
        if not name.startswith("tests/lint/"):
            is_page |= is_script(file) or file.suffix in OTHER_CODE or file.name == "CMakeLists.txt"
        is_past = name.startswith("docs/measurements/") or name in FORMER_NAMES
        if is_past or not is_page and file.suffix not in CODE:
            continue
        parts = [text(file)] if is_page else [comments_only(text(file))]
        if not is_page:
            of_tests = name.startswith("tests/")
            parts.append((names_of_tests if of_tests else texts_only)(text(file)))
        for words in parts:
            for match in OLD_WORDS.finditer(words):
                number = words.count("\n", 0, match.start()) + 1
                yield f"{name}:{number}: say `{' '.join(match[0].split())}` in a word of today"


def tests_begin_with_their_subject():
    """The name of a test is a sentence that says what is true."""
    for file in files(".cpp"):
        for number, line in enumerate(names_of_tests(text(file)).splitlines(), 1):
            if match := re.match(r"\s(?:that|who|whose|whom|and|or)\b.*", line):
                yield f"{short(file)}:{number}: begin with the subject: `{match[0].strip()}`"


# ---- Tools


def code_is_formatted():
    """As .clang-format says; version 14, because others format differently."""
    for name in ("clang-format-14", "clang-format"):
        if shutil.which(name) and "version 14." in run([name, "--version"])[1]:
            break
    else:
        raise Skip("there is no clang-format 14 here")
    names = [short(file) for file in files(*CODE)]
    chunks = [names[at : at + 50] for at in range(0, len(names), 50)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for _, said in pool.map(lambda chunk: run([name, "--dry-run", "-Werror", *chunk]), chunks):
            # The first complaint of each file is enough to know what to do.
            matches = list(re.finditer(r"^([^:\n]+):\d+", said, re.M))
            places = {m[1]: m[0] for m in reversed(matches)}
            for file, place in sorted(places.items()):
                yield f"{place}: run `{name} -i {file}`"


def shell_scripts():
    for file in all_files():
        if file.suffix == ".sh" or is_script(file) and "bash" in text(file).splitlines()[0]:
            yield file


def scripts_pass_shellcheck():
    """Shell scripts break in ways that only a tool sees."""
    if not shutil.which("shellcheck"):
        raise Skip("there is no shellcheck here")
    def check(file):
        return run(["shellcheck", "--external-sources", "--format=gcc", short(file)])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for content, said in pool.map(check, shell_scripts()):
            if not content:
                yield said.strip()


# In awk, `exit` in END comes after the last line.
ENDS_EARLY = re.compile(
    r"(?<!\|)\|\s*(?:head\b|grep\s+(?:-\S+\s+)*-\w*[qm]|(?!.*\bEND\b)awk\b.*\bexit\b|sed\b.*\dq\b)"
)


def pipes_are_read_to_their_end():
    """Who writes when nobody reads any more is killed, now and then.

    Pipefail makes that an error.
    """
    for file in shell_scripts():
        for number, line in enumerate(text(file).splitlines(), 1):
            if ENDS_EARLY.search(line) and "|| true" not in line:
                yield f"{short(file)}:{number}: read all of it, or ignore the status (`|| true`)"


RULES = [
    headers_compile_alone,
    ordered_atomics_name_their_partner,
    relaxed_atomics_say_why_that_is_enough,
    atomics_say_their_order,
    files_start_with_their_licence,
    the_root_holds_what_it_must,
    files_hold_no_machine_paths,
    open_ends_name_an_issue,
    invariants_are_executed,
    tests_mirror_the_tree,
    processes_of_tests_are_children,
    descriptors_are_above_the_standard_streams,
    includes_go_down,
    lines_have_at_most_100_columns,
    headings_look_alike,
    own_includes_come_first,
    own_functions_are_told_apart,
    standard_names_are_included,
    own_types_are_included,
    mutants_find_their_text,
    named_paths_exist,
    named_functions_exist,
    tables_list_what_is_there,
    lists_name_all_links,
    examples_are_where_their_row_says,
    named_constants_exist,
    named_constants_have_their_figure,
    words_are_plain,
    tests_begin_with_their_subject,
    no_file_is_longer_than_600_lines,
    classes_have_one_source,
    rooms_keep_their_size,
    settings_keep_their_number,
    code_is_formatted,
    scripts_pass_shellcheck,
    pipes_are_read_to_their_end,
]


def main(names):
    rules = {rule.__name__: rule for rule in RULES}
    if names == ["--list"]:
        print("\n".join(rules))
        return 0
    if unknown := [n for n in names if n not in rules]:
        print(f"no such rule: {', '.join(unknown)}; --list shows them all", file=sys.stderr)
        return 1

    complaints, checked = 0, 0
    for name in names or rules:
        try:
            for complaint in rules[name]():
                print(f"{complaint}  [{name}]")
                complaints += 1
            checked += 1
        except Skip as why:
            print(f"skipped: {name}: {why}")
    if complaints:
        return 1
    return 0 if checked else 77


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
