# SPDX-License-Identifier: Apache-2.0
"""The rule of the mutants that scripts/mutants plants."""

import re
import tomllib

import tree


def mutants_find_their_text():
    """A mutant's text is in its file, once. What it changes has moved on otherwise, and nobody
    would know before somebody asks the tests, which takes hours."""
    listed = tree.ROOT / "tests/mutants.toml"
    if not listed.exists():
        return
    words = listed.read_text()
    for file in tomllib.loads(words)["file"]:
        source = tree.ROOT / file["name"]
        code = re.sub(r"\s+", " ", source.read_text() if source.exists() else "")
        for name, text, _, *inside in file["mutant"]:
            found = code.count(re.sub(r"\s+", " ", inside[0] if inside else text))
            if found != 1:
                line = words.count("\n", 0, words.index(name)) + 1
                yield (
                    f"tests/mutants.toml:{line}: {file['name']} has this mutant's text "
                    f"{found} times; look what has become of it"
                )
