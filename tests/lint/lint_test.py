#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules that read code; here is what they must understand."""

import pathlib
import shutil
import tempfile
import unittest

import atomics
import lint
import tables
import tree


class Rules(unittest.TestCase):
    """On a tree of their own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(setattr, tree, "ROOT", tree.ROOT)
        tree.ROOT = pathlib.Path(folder.name)

    def make(self, name, code):
        file = tree.ROOT / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)

    def write(self, code, name="a.cpp"):
        self.make(f"rmem/{name}", code)


MUTANT = '[[file]]\nname = "rmem/a.cpp"\nmutant = [["a", "b", ""]]'
OWN = """#include "rmem/above.hpp"

namespace rmem {

namespace {

int f(int a) {
    return a;
}

}  // namespace

}  // namespace rmem"""

TABLE = "## {}\n\n| a | b | c |\n|---|---|---|\n"
HOUSE = TABLE.format("The house") + "| `rmem/` | `gone/` of it |"
TO_ADD = TABLE.format("Where things belong") + "| a | `rmem/above.hpp` | `Below` |"
LINKS = '{LinkKind::direct, "direct"},\n{LinkKind::ring, "ring"}, {LinkKind::udp, "udp"}};'

OFFENCES = {
    "headers_compile_alone": ("rmem/a.h", "bool is_c_without_a_header(void);"),
    "ordered_atomics_name_their_partner": ("rmem/a.cpp", "a.load(std::memory_order_acquire);"),
    "relaxed_atomics_say_why_that_is_enough": ("rmem/a.cpp", "a.load(std::memory_order_relaxed);"),
    "atomics_say_their_order": ("rmem/a.cpp", "a.load();"),
    "files_start_with_their_licence": ("rmem/a.cpp", "int a;"),
    "the_root_holds_what_it_must": (".0", "left there"),
    "files_hold_no_machine_paths": ("docs/a.md", "as in /" "home/me/rmem"),
    "open_ends_name_an_issue": ("rmem/a.cpp", "// TO" "DO: all of it"),
    "invariants_are_executed": ("rmem/a.hpp", "/// Invariants: there is one."),
    "tests_mirror_the_tree": ("tests/gone/a_test.cpp", "int a;"),
    "processes_of_tests_are_children": ("tests/rmem/a_test.cpp", "pid_t a = ::fork();"),
    "descriptors_are_above_the_standard_streams": ("rmem/a.cpp", "int a = ::open(b, 0);"),
    "includes_go_down": ("rmem/base/a.cpp", '#include "rmem/above.hpp"'),
    "lines_have_at_most_100_columns": ("rmem/CMakeLists.txt", "# " + 99 * "a"),
    "headings_look_alike": ("rmem/a.cpp", "// ---- Receiving ----"),
    "own_includes_come_first": ("rmem/a.cpp", '#include <a>\n\n#include "rmem/above.hpp"'),
    "own_functions_are_told_apart": ("rmem/b.cpp", OWN),
    "standard_names_are_included": ("rmem/a.cpp", "std::vector<int> a;"),
    "own_types_are_included": ("rmem/a.cpp", "Above a;"),
    "mutants_find_their_text": ("tests/mutants.toml", MUTANT),
    "named_paths_exist": ("rmem/a.cpp", "// as rmem/gone.hpp says"),
    "named_functions_exist": ("docs/a.md", "calls `gone_since()`"),
    "tables_list_what_is_there": ("README.md", HOUSE),
    "lists_name_all_links": ("rmem/base/link_kind.cpp", "// `direct`, `ring` or `sim`\n" + LINKS),
    "examples_are_where_their_row_says": ("CONTRIBUTING.md", TO_ADD),
    "named_constants_exist": ("docs/a.md", "`kGone`"),
    "named_constants_have_their_figure": ("rmem/a.cpp", "constexpr int kA = 1;  // 2 (kA)"),
    "words_are_plain": ("rmem/a.cpp", "// till then"),
    "tests_begin_with_their_subject": ("rmem/a.cpp", "TEST(Ring, that_waits_ends) {}"),
    "no_file_is_longer_than_600_lines": ("rmem/a.py", 600 * "\n" + "a = 1"),
    "classes_have_one_source": ("rmem/c.hpp", "class C {\n" + 600 * "\n" + "};"),
    "rooms_keep_their_size": ("tests/sizes.toml", "[code]\nrmem = 1\n[tests]"),
    "settings_keep_their_number": ("rmem/base/environment_variable.cpp", '    "RMEM_A",'),
    "code_is_formatted": ("rmem/a.cpp", "int  a;"),
    "scripts_pass_shellcheck": ("rmem/a.sh", "#!/bin/sh\nrm \"$a\""),
    "pipes_are_read_to_their_end": ("rmem/a.sh", "a | head -n 1"),
}


class Offences(Rules):
    """Each rule has one here that it finds, and finds nothing in a tree without it."""

    def test_every_rule_finds_its_own(self):
        self.assertEqual(list(OFFENCES), [rule.__name__ for rule in lint.RULES])
        above = "// SPDX-License-Identifier: Apache-2.0\n#pragma once\nstruct Above {};\n"
        self.make("rmem/above.hpp", above)
        self.make("rmem/above.cpp", f'// SPDX-License-Identifier: Apache-2.0\n{OWN}\n')
        shutil.copy(pathlib.Path(lint.__file__).parents[2] / ".clang-format", tree.ROOT)
        for rule in lint.RULES:
            name, text = OFFENCES[rule.__name__]
            with self.subTest(rule.__name__):
                try:
                    self.assertEqual(list(rule()), [])
                    self.make(name, text + "\n")
                    (complaint,) = rule()
                    self.assertRegex(complaint, rf"^{name}:\d+:")
                except tree.Skip as why:
                    print(f"skipped: {rule.__name__}: {why}")
                finally:
                    (tree.ROOT / name).unlink(missing_ok=True)


class Atomics(Rules):
    def ordered(self, code):
        self.write(code)
        return list(lint.ordered_atomics_name_their_partner())

    def relaxed(self, code):
        self.write(code)
        return list(lint.relaxed_atomics_say_why_that_is_enough())

    RELEASE = "// (1) pairs with (2)\na.store(1, std::memory_order_release);\n"
    ACQUIRE = "// (2) pairs with (1)\na.load(std::memory_order_acquire);\n"

    def test_a_pair_is_content(self):
        self.assertEqual(self.ordered(self.RELEASE + self.ACQUIRE), [])

    def test_a_pair_may_lie_in_two_files(self):
        self.write("// (1) with b.hpp (1)\na.store(1, std::memory_order_release);\n")
        self.write("a.load(std::memory_order_acquire);  // (1) with rmem/a.cpp (1)\n", "b.hpp")
        self.assertEqual(list(lint.ordered_atomics_name_their_partner()), [])

    def test_a_partner_may_stand_on_two_lines(self):
        self.write("// (1) with\n// b.hpp\n// (1)\na.store(1, std::memory_order_release);\n")
        self.write("a.load(std::memory_order_acquire);  // (1) with a.cpp (1)\n", "b.hpp")
        self.assertEqual(list(lint.ordered_atomics_name_their_partner()), [])

    def test_an_operation_without_a_number_is_named_with_its_line(self):
        (complaint,) = self.ordered("\na.load(std::memory_order_acquire);\n")
        self.assertTrue(complaint.startswith("rmem/a.cpp:2: number it"), complaint)

    def test_a_partner_must_exist(self):
        (complaint,) = self.ordered(self.RELEASE)
        self.assertIn("(1) names rmem/a.cpp (2), which is not there", complaint)

    def test_a_partner_names_back(self):
        another = "// (3) pairs with (2)\na.store(2, std::memory_order_release);\n"
        (complaint,) = self.ordered(self.RELEASE + self.ACQUIRE + another)
        self.assertIn("rmem/a.cpp:4: (2) is named by rmem/a.cpp (3)", complaint)

    def test_a_comment_of_c_counts(self):
        release = "a.store(1, std::memory_order_release); /* (1) with (2) */\n"
        self.assertEqual(self.ordered(release + self.ACQUIRE), [])

    def test_a_folder_in_scope_is_read(self):
        for folder in atomics.SCOPE:
            self.make(f"{folder}/b.cpp", "a.load(std::memory_order_relaxed);\n")
        complaints = list(lint.relaxed_atomics_say_why_that_is_enough())
        self.assertEqual(len(complaints), len(atomics.SCOPE))

    def test_a_release_does_not_pair_with_a_release(self):
        another = self.ACQUIRE.replace("acquire", "release")
        self.assertEqual(len(self.ordered(self.RELEASE + another)), 2)

    def test_a_number_is_given_once(self):
        complaints = self.ordered(self.RELEASE + self.ACQUIRE + self.ACQUIRE)
        self.assertEqual(len(complaints), 1)
        self.assertIn("(2) is taken by line 4", complaints[0])

    def test_the_complexity_of_an_algorithm_is_no_number(self):
        self.assertEqual(len(self.ordered("// O(1)\na.load(std::memory_order_acquire);\n")), 1)

    def test_a_comment_belongs_to_the_whole_statement(self):
        spread = "// (2) pairs with (1)\nif (x &&\n    a.load(\n    std::memory_order_acquire)) {\n"
        self.assertEqual(self.ordered(self.RELEASE + spread), [])

    def implicit(self, code, name="a.cpp"):
        self.write("std::atomic<bool> flag_, other_{false};\nstd::array<std::atomic<int>, 2> all_;")
        self.write(code, name)
        return list(lint.atomics_say_their_order())

    def test_an_operator_names_no_order(self):
        for line in (
            "flag_ = true;",
            "++all_[0];",
            "all_[i]--;",
            "all_[1] |= 4;",
            "it->other_ = false;",
            "if (a && other_) f();",
            "return flag_;",
            "f(flag_ ? 1 : 2);",
            "while (!it.flag_) g();",
            "if (all_[1] != 3) g();",
        ):
            (complaint,) = self.implicit(f"// flag_ = 1\n{line}\n", "b.cpp")
            self.assertTrue(complaint.startswith("rmem/b.cpp:2: "), (line, complaint))

    def test_a_call_without_an_order_names_none(self):
        for line in (
            "flag_.load();",
            "all_[1].store(f(2));",
            "x->fetch_add(1);",
            "c.compare_exchange_strong(a, b);",
            "std::atomic_ref(word).load();",
        ):
            (complaint,) = self.implicit(line, "b.cpp")
            self.assertTrue(complaint.startswith("rmem/b.cpp:1: "), (line, complaint))

    def test_calls_with_an_order_and_what_is_no_atomic_are_right(self):
        for line in (
            "if (flag_.load(std::memory_order_relaxed)) f(&other_);",
            "bool flag = false; flag = true; flag |= x.other;",
            "memory_.store(4, 1); const auto it = memory_.load(at);",
            "all_[1].store(\n    f(2),\n    std::memory_order_relaxed);",
            "for (auto& one : all_) f(one);",
        ):
            self.assertEqual(self.implicit(line, "b.cpp"), [], line)

    def test_a_name_of_something_else_is_one_of_an_atomic_beside_its_declaration(self):
        self.write("int flag_ = 0;\nflag_ = 1;\n", "c.cpp")
        self.assertEqual(self.implicit("flag_ = 1;\n", "b.cpp"), [])
        self.write("std::atomic<int> flag_;\n", "b.hpp")
        self.assertEqual(len(self.implicit("flag_ = 1;\n", "b.cpp")), 1)

    def test_relaxed_needs_a_reason(self):
        (complaint,) = self.relaxed("a.load(std::memory_order_relaxed);\n")
        self.assertTrue(complaint.startswith("rmem/a.cpp:1: say why"), complaint)

    def test_the_word_alone_is_no_reason(self):
        for said in ("enough", "relaxed is enough", "enough."):
            complaints = self.relaxed(f"a.load(std::memory_order_relaxed);  // {said}\n")
            self.assertEqual(len(complaints), 1, said)

    def test_a_hint_has_a_type_of_its_own(self):
        (complaint,) = self.relaxed("a.load(std::memory_order_relaxed);  // enough: a hint\n")
        self.assertIn("use a Hint", complaint)

    def test_a_reason_covers_its_paragraph_and_no_more(self):
        line = "a.load(std::memory_order_relaxed);\n"
        reason = "// relaxed is enough: who has the lock is the only one\n"
        self.assertEqual(self.relaxed(reason + line + line), [])
        self.assertEqual(len(self.relaxed(reason + line + "\n" + line)), 1)


class Headers(Rules):
    def test_one_that_is_installed_and_lacks_something_is_named(self):
        self.make("rmem/CMakeLists.txt", "rmem_library(rmem\n    HEADERS alone.hpp\n    whole.hpp)")
        self.write("inline Size f() { return 0; }\n", "alone.hpp")
        self.write("using Size = unsigned;\ninline Size g() { return 0; }\n", "whole.hpp")
        self.write("inline Size f() { return 0; }\n", "inside.hpp")
        (complaint,) = lint.headers_compile_alone()
        self.assertTrue(complaint.startswith("rmem/alone.hpp:1: include what it needs"), complaint)

    def lacking(self):
        return [line.split(" needs")[0] for line in lint.standard_names_are_included()]

    def test_a_standard_name_needs_its_header(self):
        self.write("#include <string>\nstd::string a;\n\nstd::optional<int> b;\n")
        self.assertEqual(self.lacking(), ["rmem/a.cpp:4: std::optional"])

    def test_one_that_the_headers_of_the_tree_include_is_there(self):
        self.write("#include <optional>\n", "b.hpp")
        self.write('#include "rmem/b.hpp"\n', "a.hpp")
        self.write('#include "rmem/a.hpp"\nstd::optional<int> b;\n')
        self.assertEqual(self.lacking(), [])

    def types_lacking(self):
        return list(lint.own_types_are_included())

    def test_a_type_needs_the_header_that_has_it(self):
        self.write("class Bank {\n};\n", "bank.hpp")
        self.write("Bank a;\n")
        self.assertEqual(
            self.types_lacking(), ['rmem/a.cpp:1: Bank needs #include "rmem/bank.hpp"']
        )

    def test_so_does_a_constant(self):
        self.write("inline constexpr int kMax = 3;\n", "bank.hpp")
        self.write("int a = kMax;\n")
        self.write("enum Place { kLeast, kMax };\nint b = kMax;\n", "b.cpp")
        self.assertEqual(
            self.types_lacking(), ['rmem/a.cpp:1: kMax needs #include "rmem/bank.hpp"']
        )

    def test_one_that_is_declared_or_a_parameter_needs_none(self):
        self.write("class Bank {\n};\n", "bank.hpp")
        self.write("class Bank;\nBank* a;\n")
        self.write("template <unsigned Bank>\nint f(int a = Bank);\n", "b.cpp")
        self.assertEqual(self.types_lacking(), [])

    def test_one_whose_headers_include_each_other_has_both(self):
        self.write('#include "rmem/b.hpp"\nclass One {\n};\n', "a.hpp")
        self.write('#include "rmem/a.hpp"\nclass Two {\n    One* one;\n};\n', "b.hpp")
        self.write('#include "rmem/a.hpp"\nTwo a;\n')
        self.assertEqual(self.types_lacking(), [])

    def test_one_in_a_comment_or_a_text_needs_none(self):
        self.write('// std::optional\nconst char* a = "std::vector";\n')
        self.assertEqual(self.lacking(), [])


class Invariants(Rules):
    CLAIM = "/// Invariants: at most two.\n"

    def check(self, header, source=""):
        self.write(self.CLAIM + header, "a.hpp")
        self.write('#include "rmem/a.hpp"\n' + source)
        return list(lint.invariants_are_executed())

    def test_one_that_nothing_executes_is_named(self):
        (complaint,) = self.check("// RMEM_CHECK(later)\n", 'puts("RMEM_CHECK(x)");\n')
        self.assertTrue(complaint.startswith("rmem/a.hpp:1: execute it"), complaint)

    def test_a_check_is_in_the_header_or_in_a_source_that_begins_with_it(self):
        self.assertEqual(self.check("void f() { RMEM_CHECK(n < 3); }\n"), [])
        self.assertEqual(self.check("void f();\n", "RMEM_CHECK_IF(false, n < 3);\n"), [])

    def test_a_check_of_who_uses_it_is_none_of_it(self):
        self.write('#include "rmem/b.hpp"\n#include "rmem/a.hpp"\nRMEM_CHECK(n < 3);\n', "b.cpp")
        self.write("", "b.hpp")
        self.assertEqual(len(self.check("void f();\n")), 1)


class Constants(Rules):
    CODE = "constexpr std::int64_t kRestNs = 2 * kStepNs;\nconstexpr int kStepNs = 1'500;\n"

    def figures(self, comment, code=CODE):
        self.write(f"{comment}\n{code}")
        return list(lint.named_constants_have_their_figure())

    def test_a_name_in_a_comment_or_a_page_is_one_of_the_code(self):
        self.make("docs/page.md", "As long as `kRestNs`.\n\nUntil `kGoneNs`.\n")
        self.write("// for kStepNs, not kLostNs\n" + self.CODE)
        self.assertEqual(
            sorted(lint.named_constants_exist()),
            ["docs/page.md:3: there is no kGoneNs", "rmem/a.cpp:1: there is no kLostNs"],
        )

    def test_a_page_may_name_what_its_own_program_has(self):
        self.make("docs/page.md", "`kOwn` is\n\n```cpp\nconstexpr int kOwn = 1;\n```\n")
        self.assertEqual(list(lint.named_constants_exist()), [])

    def test_a_figure_beside_a_name_is_its_value(self):
        rights = ("3 µs (`kRestNs`)", "`kRestNs` (3000 ns)", "kRestNs = 3 us", "1.5 µs (kStepNs)")
        for right in rights:
            self.assertEqual(self.figures(f"// it takes {right}."), [], right)
        for wrong in ("4 µs (`kRestNs`; so)", "`kRestNs` (3 ms)", "kRestNs = 3", "1 µs (kStepNs)"):
            self.assertEqual(len(self.figures(f"// it takes {wrong}.")), 1, wrong)
        (complaint,) = self.figures("/// 4 µs (kRestNs)")
        self.assertEqual(complaint, "rmem/a.cpp:1: kRestNs is 3000, not 4000")

    def test_a_figure_in_a_page_counts(self):
        self.write("inline constexpr std::size_t kPart = std::size_t{64} << 10;\n")
        self.make("docs/page.md", "to 64 KiB (`kPart`),\nand to 128 KiB\n(`kPart`)\n")
        self.make("docs/man/a.7", 'has 64K\n.\\" kPart\nand 64 KiB.\n.\\" kPart\n')
        said = ["docs/man/a.7:1: kPart is 65536, not 64"]
        said += ["docs/page.md:2: kPart is 65536, not 131072"]
        self.assertEqual(sorted(lint.named_constants_have_their_figure()), said)

    def test_one_of_several_constants_of_a_name_is_enough(self):
        self.write("constexpr int kRoom = 8;\n", "b.cpp")
        self.assertEqual(self.figures("// 8 (kRoom)", "constexpr int kRoom = 9;\n"), [])
        self.assertEqual(len(self.figures("// 7 (kRoom)", "constexpr int kRoom = 9;\n")), 1)

    def test_a_value_that_no_program_can_tell_is_said_without_a_figure(self):
        (complaint,) = self.figures("// 8 (kRoom)", "constexpr int kRoom = sizeof(int);\n")
        self.assertIn("say no figure", complaint)


class Layers(Rules):
    def complaints(self, **headers):
        """Of files that include what is said: rmem_base_a="rmem/ring/ring.hpp"."""
        for name in (
            "rmem/base/x.hpp",
            "rmem/ring/ring.hpp",
            "rmem/link/direct/x.hpp",
            "ports/fm/fm1.h",
        ):
            self.make(name, "")
        for name, header in headers.items():
            self.make(name.replace("_", "/") + ".cpp", f"#include <vector>\n#include <{header}>\n")
        return list(lint.includes_go_down())

    def test_down_and_within_a_layer_is_right(self):
        headers = {"rmem_ring_a": "rmem/ring/ring.hpp", "rmem_wire_a": "rmem/base/x.hpp"}
        self.assertEqual(self.complaints(**headers), [])

    def test_up_is_named_with_its_line(self):
        (complaint,) = self.complaints(rmem_base_a="rmem/ring/ring.hpp")
        self.assertIn("rmem/base/a.cpp:2: rmem/base may not include rmem/ring", complaint)

    def test_beside_is_not_down(self):
        (complaint,) = self.complaints(rmem_link_ring_a="rmem/link/direct/x.hpp")
        self.assertIn("may not include rmem/link/direct", complaint)

    def test_folders_of_a_star_do_not_see_each_other(self):
        self.make("cards/x/x.hpp", "")
        (complaint,) = self.complaints(cards_x_a="cards/x/x.hpp", cards_y_a="cards/x/x.hpp")
        self.assertIn("cards/y may not include cards/x", complaint)

    def test_what_a_room_below_may_include_so_may_those_above(self):
        self.assertIn("rmem/base", lint.layers()["tools/bridge"])
        self.assertNotIn("billboard/core", lint.layers()["cards/*"])

    def test_what_is_found_from_the_ports_folder_counts(self):
        (complaint,) = self.complaints(billboard_core_a="fm/fm1.h")
        self.assertIn("(fm/fm1.h)", complaint)

    def test_every_layer_is_there(self):
        tree.ROOT = pathlib.Path(lint.__file__).resolve().parents[2]
        for name in lint.layers():
            places = [name, f"{name}.hpp", f"{name}.cpp"]
            self.assertTrue(any(any(tree.ROOT.glob(place)) for place in places), name)


class Classes(Rules):
    def test_one_in_two_sources_is_right_where_it_is_known_and_has_not_grown(self):
        self.make("rmem/a.hpp", "namespace rmem {\nclass A {\n};\n}\n")
        for name, count in (("a", 0), ("b", 1)):
            self.make(f"rmem/{name}.cpp", f"namespace rmem {{\nvoid A::{name}() {{\n}}\n}}\n")
            self.assertEqual(len(list(lint.classes_have_one_source())), count)
        for most, count in ((12, 0), (11, 1)):
            self.make("tests/sizes.toml", f'[classes]\n"rmem::A" = {most}\n')
            self.assertEqual(len(list(lint.classes_have_one_source())), count)
        self.make("rmem/b.cpp", "")
        self.assertIn("no exception", next(lint.classes_have_one_source()))
        self.make("tests/sizes.toml", "[code]\nrmem = 109\n[tests]\n")
        self.assertIn("lower that", next(lint.rooms_keep_their_size()))


class Columns(Rules):
    LONG = 21 * "five " + "\n"

    def test_prose_of_a_page_is_wrapped(self):
        self.make("docs/a.md", "# A\n\n" + self.LONG)
        (complaint,) = lint.lines_have_at_most_100_columns()
        self.assertEqual(complaint, "docs/a.md:3: wrap it, 105 columns are too many")

    def test_tables_programs_and_measurements_are_not(self):
        self.make("docs/a.md", f"| a | {self.LONG}\n```sh\n{self.LONG}```\n")
        self.make("docs/measurements/a.md", self.LONG)
        self.assertEqual(list(lint.lines_have_at_most_100_columns()), [])


class Paths(Rules):
    def test_one_that_leads_nowhere_is_named_with_its_line(self):
        self.write("\n// as rmem/gone.hpp says, and rmem/a.cpp\n")
        (complaint,) = lint.named_paths_exist()
        self.assertEqual(complaint, "rmem/a.cpp:2: there is no rmem/gone.hpp")


class Functions(Rules):
    def test_one_that_is_not_there_is_named_with_its_line(self):
        self.write("void Old::run_all() {}  // by gone_since()\n", "core_joining.cpp")
        self.make("docs/a.md", "`Old::run_all`, `core_joining`, `std::run_all`\n\n`Old::gone()`")
        self.assertEqual(list(lint.named_functions_exist()), ["docs/a.md:3: there is no gone"])
        for name in ("run_none()", "run_none(a, b)", "Older", "is()"):
            self.make("docs/a.md", f"`{name}`, and `Old` or `a` or `word`\n")
            self.assertEqual(len(list(lint.named_functions_exist())), 1, name)

    def test_one_that_another_class_has_is_not_there(self):
        self.write("class alignas(64) Old {\n    void run_all();\n};\nint a = New<int>::run_b();\n")
        self.write("void start_all() {}\n", "b.cpp")
        self.make("docs/a.md", "`Old::run_all`, `New::run_b`, `start_all`, `Old::start_all`\n")
        self.assertEqual(list(lint.named_functions_exist()), ["docs/a.md:1: there is no start_all"])

    def test_those_of_other_systems_and_of_programs_are_not_ours(self):
        self.make("docs/a.md", "`ucp_put(a)`\n```c\n`gone_since()`\n```\n")
        self.assertEqual(list(lint.named_functions_exist()), [])


class Tables(Rules):
    def test_what_a_page_lacks_and_what_the_tree_lacks_is_named(self):
        for name in ("rmem/link/a.hpp", "rmem/notes/a.txt", "docs/b/a.cpp", "docs/design/a.md"):
            self.make(name, "")
        self.write('T a("rmem-a", [] {});\nT b(\n    "rmem-b", [] {});\n')
        self.make("README.md", TABLE.format("The house") + "| `rmem/` | `link/`, `a.hpp` |\n")
        page = TABLE.format("The layers") + "| `x/b`, then `e` | `f` |\n\n"
        page += TABLE.format("Threads and processes") + "| program | | |\n"
        page += "| `rmem-a` | `rmem/a.cpp` | |\n\n## Where to read on\n\n[b](design/b.md#c)\n"
        self.make("docs/ARCHITECTURE.md", page)
        self.make("docs/pictures/layers.svg", "<text>base, ring</text>")
        found = tables.differences(["x/b", "f", "rmem/link"])
        self.assertEqual(
            [complaint.removeprefix("docs/ARCHITECTURE.md:") for complaint in found],
            [
                "README.md:5: add docs below `The house`",
                "5: add f below `The layers`",
                "5: add rmem/link below `The layers`",
                "5: there is no e",
                "12: add rmem-b below `Threads and processes`",
                "16: add design/a.md below `Where to read on`",
                "16: there is no design/b.md",
                "docs/pictures/layers.svg:1: draw rmem/link",
            ],
        )

    def test_an_example_is_in_each_file_and_folder_of_its_row(self):
        self.make("docs/man/a.1", "by below()")
        self.write("below_all() beyond()")
        row = TO_ADD.partition("`rmem")[0] + "`rmem/a.cpp`, a page of `docs/man/`, `words` | "
        self.make("CONTRIBUTING.md", row + "`below`, `beyond` |\n")
        self.assertEqual(list(lint.examples_are_where_their_row_says()), [])
        self.make("CONTRIBUTING.md", row + "`below` |\n")
        (complaint,) = lint.examples_are_where_their_row_says()
        self.assertEqual(complaint, "CONTRIBUTING.md:5: rmem/a.cpp has no below")


class Forks(Rules):
    def complaints(self, name, code):
        self.make(name, code)
        return list(lint.processes_of_tests_are_children())

    def test_one_in_a_test_is_named_with_its_line(self):
        for call in ("::fork()", "vfork()", "forkpty(&fd, 0, 0, 0)"):
            (complaint,) = self.complaints("tests/rmem/a_test.cpp", f"\nif ({call} == 0) {{}}\n")
            self.assertTrue(complaint.startswith("tests/rmem/a_test.cpp:2: let a Child"), complaint)

    def test_a_child_a_comment_a_text_and_a_product_may(self):
        self.assertEqual(self.complaints("tests/support/child.hpp", "pid = ::fork();\n"), [])
        self.assertEqual(self.complaints("tests/a_test.cpp", '// fork()\nf("fork()ed");\n'), [])
        self.assertEqual(self.complaints("tools/a.cpp", "pid = ::fork();\n"), [])


class Words(Rules):
    def complaints(self, code, name="a.cpp"):
        self.write(code, name)
        return list(lint.words_are_plain())

    def test_an_old_one_in_a_comment_is_named_with_its_line(self):
        (complaint,) = self.complaints("int a;\n// waits till then\n")
        self.assertEqual(complaint, "rmem/a.cpp:2: say `till` in a word of today")

    def test_one_in_a_page_or_a_header_of_c_is_too(self):
        self.assertEqual(len(self.complaints("Lest it waits.\n", "a.md")), 1)
        (tree.ROOT / "rmem" / "a.md").unlink()
        self.assertEqual(len(self.complaints("int a; /* whoever\n * it is */\n", "a.h")), 1)

    def test_one_on_two_lines_is_found(self):
        (complaint,) = self.complaints("// refused for\n/// want of room\n")
        self.assertEqual(complaint, "rmem/a.cpp:1: say `for want of` in a word of today")

    def test_one_in_what_a_program_says_is_named_with_its_line(self):
        (complaint,) = self.complaints('f("refused\\nfor "\n  "want of room");\n')
        self.assertEqual(complaint, "rmem/a.cpp:1: say `for want of` in a word of today")
        (complaint,) = self.complaints('int a;\nauto c = R"(all\nin vain " // fine)"; // "\n')
        self.assertEqual(complaint, "rmem/a.cpp:3: say `in vain` in a word of today")

    def test_a_clause_in_place_of_a_noun_is_named(self):
        (complaint,) = self.complaints("// read by who holds it\n// tells who holds it\n")
        self.assertEqual(complaint, "rmem/a.cpp:1: say `by who` in a word of today")

    def test_one_in_the_name_of_a_test_is_named_with_its_line(self):
        self.make("tests/a_test.cpp", "\nTEST(Rank, waits_for_ever) {}\nTEST(Rank, waits) {}\n")
        self.assertEqual(
            list(lint.words_are_plain()), ["tests/a_test.cpp:2: say `for ever` in a word of today"]
        )

    def test_the_name_of_a_test_begins_with_its_subject(self):
        tests = "TEST(Rank,\n     thatches) {}\nTEST_F(Rank, that_waits) {}\n"
        self.make("tests/a_test.cpp", tests)
        self.assertEqual(
            list(lint.tests_begin_with_their_subject()),
            ["tests/a_test.cpp:3: begin with the subject: `that waits`"],
        )

    def test_former_names_stay_in_the_glossary(self):
        (tree.ROOT / "docs" / "measurements").mkdir(parents=True)
        for name in ("docs/glossary.md", "docs/measurements/2024-01-01.md"):
            (tree.ROOT / name).write_text("in vain\n")
        self.assertEqual(list(lint.words_are_plain()), [])


class Pipes(Rules):
    def complaints(self, line):
        self.write("#!/usr/bin/env bash\nset -o pipefail\n" + line + "\n", "a.sh")
        return list(lint.pipes_are_read_to_their_end())

    def test_a_reader_that_ends_early_is_named_with_its_line(self):
        for reader in ("head -n 1", "grep -q x", "grep -F -q x", "awk '{ print; exit }'", "sed 3q"):
            (complaint,) = self.complaints(f"a=$(ldconfig -p | {reader})")
            self.assertTrue(complaint.startswith("rmem/a.sh:3: read all"), complaint)

    def test_one_that_reads_all_or_whose_status_is_ignored_is_none(self):
        for line in (
            "a | grep x >/dev/null",
            "a | head -n 1 || true",
            "a || head -n 1 file",
            "a | awk '{ n++ } END { exit !n }'",
            "grep -q x file",
        ):
            self.assertEqual(self.complaints(line), [], line)


if __name__ == "__main__":
    unittest.main()
