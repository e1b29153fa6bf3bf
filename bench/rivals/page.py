# SPDX-License-Identifier: Apache-2.0
"""The page of `curves`: a picture for each rhythm and its tables, as Markdown."""
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
OURS, FLOORS = "#2f6db3", ["#777777", "#aaaaaa", "#cccccc"]
RIVALS = ["#c0392b", "#e0a030", "#3a9a5b", "#8e5bb5", "#b06a3b", "#17a2b8"]
SMALLEST = 0.8  # where an empty message is drawn, as a logarithm has no place for it


def write(place, heading, sections):
    """`sections`: (name of a file, title, systems, number of floors, rows, table) each.

    The first system is ours, and floors follow; a row is bytes and the systems' figures.
    """
    place.mkdir(parents=True, exist_ok=True)
    draws = shutil.which("gnuplot") is not None
    lines = [f"# {heading}", ""]
    for name, title, systems, floors, rows, table in sections:
        lines += [f"## {title}", ""]
        if draws and len(rows) > 1:
            picture = place / f"{name}.svg"
            draw(picture, title, systems, floors, rows)
            lines += [f"![{title}]({picture.name})", ""]
        lines += [*table, ""]
    page = place / "README.md"
    page.write_text("\n".join(lines))
    return page, draws


def draw(picture, title, systems, floors, rows):
    colours = [OURS, *FLOORS[:floors], *RIVALS][:len(systems)]
    data = picture.with_suffix(".dat")
    data.write_text("\n".join(
        [" ".join(f'"{word}"' for word in ["bytes", *systems]),
         *[" ".join([f"{size or SMALLEST}", *["?" if f is None else f"{f:.1f}" for f in figures]])
           for size, figures in rows]]) + "\n")
    terminal = "svg size 900,540 font 'sans,14' background 'white'"
    subprocess.run(["gnuplot", "-e", f"set terminal {terminal}; set output '{picture}'; "
                    f"data = '{data}'; about = '{title}'; colours = '{' '.join(colours)}'",
                    HERE / "curves.gp"], check=True)
    data.unlink()
