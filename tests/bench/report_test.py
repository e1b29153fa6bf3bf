# SPDX-License-Identifier: Apache-2.0
"""How bench/run tells and judges what it has measured."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import types
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import report  # noqa: E402
import suites  # noqa: E402
import systems  # noqa: E402

loader = importlib.machinery.SourceFileLoader("run", str(BENCH / "run"))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
loader.exec_module(run)


def row(system, number, ns, size=8, count=20, **more):
    return {"scene": "s", "rhythm": "pingpong", "bytes": size, "count": count, "ranks": 2,
            "more": 0, "loss": None, "system": system, "round": number, "p50_ns": ns,
            "hop_ns": 100, **more}


def target(**changes):
    return suites.Target(**{"title": "t", "scene": "s", "rhythm": "pingpong", "ours": "a",
                            "theirs": ("b", "c"), "limit": 1.0, **changes})


class ATarget(unittest.TestCase):
    def values(self, rows, **changes):
        return report.judged(target(**changes), rows)

    def test_takes_the_ratio_within_a_round(self):
        rows = [row("a", 1, 100), row("b", 1, 200), row("a", 2, 300), row("b", 2, 600),
                row("a", 3, 1), row("b", 4, 1)]
        self.assertEqual(self.values(rows), ([0.5, 0.5], 8))

    def test_compares_with_the_best_of_several(self):
        rows = [row("a", 1, 100), row("b", 1, 200), row("c", 1, 50)]
        self.assertEqual(self.values(rows)[0], [2.0])

    def test_tells_the_worst_of_several_sizes(self):
        rows = [row("a", 1, 100), row("b", 1, 200), row("a", 1, 90, 64), row("b", 1, 100, 64)]
        self.assertEqual(self.values(rows)[1], 64)
        self.assertEqual(self.values(rows, how="speed")[1], 64)

    def test_prefers_means_free_of_the_clock(self):
        rows = [row("a", 1, 99, count=1), row("a", 1, 50), row("b", 1, 99, count=1),
                row("b", 1, 100)]
        self.assertEqual(self.values(rows)[0], [0.5])

    def test_is_nothing_where_one_side_is_missing(self):
        self.assertIsNone(self.values([row("a", 1, 1)]))
        self.assertIsNone(self.values([row("b", 1, 1)]))

    def test_is_met_up_to_its_limit_and_of_speed_from_it_on(self):
        def met(ns, **changes):
            rows = [row("a", 1, ns), row("b", 1, 100)]
            return [*report.targets([target(**changes)], rows)][-1].endswith("| yes |")
        self.assertTrue(met(120, limit=1.2))
        self.assertFalse(met(121, limit=1.2))
        self.assertTrue(met(50, limit=1.5, how="speed"))
        self.assertFalse(met(200, limit=1.5, how="speed"))
        self.assertTrue(met(250, limit=150, how="difference"))


class ATable(unittest.TestCase):
    ROWS = [r for n in (1, 2, 3) for r in (row("floor", n, 100.0), row("rmem", n, 100.0 + 10 * n))]

    def test_has_medians_and_ratios_of_the_rounds(self):
        told = "\n".join(report.table(self.ROWS, ["floor", "rmem"]))
        self.assertIn("| pingpong 8 B | rmem | 120 | 120 | 1.20 (1.10–1.30) | 100 | 3 |", told)

    def test_is_to_the_system_that_is_wished(self):
        told = "\n".join(report.table(self.ROWS, ["floor", "rmem"], "rmem"))
        self.assertIn("| rmem | 120 | 120 | 1.00 (1.00–1.00) |", told)

    def test_tells_what_share_of_one_way_both_have(self):
        rows = [row("a", 1, 100, rhythm="stream"), row("a", 1, 200, rhythm="both", more=8)]
        self.assertIn("| 0.50 (0.50–0.50) |", "\n".join(report.table(rows, ["a"])))

    def test_of_curves_parts_the_states_of_the_machine(self):
        rows = [*self.ROWS, *(dict(r, hop_ns=30) for r in self.ROWS)]
        states = [state for state, _, _ in report.curves(rows, ["rmem", "floor"])]
        self.assertEqual(states, ["short hops", "middling hops"])
        _, names, sizes = next(report.curves(self.ROWS, ["rmem", "floor"]))
        self.assertIn("| 8 | 100 | 3 | 120.0 | 100.0 | 1.20 |",
                      "\n".join(report.curve_table(names, sizes)))

    def test_takes_the_better_bare_ring_of_each_round(self):
        rows = [row("bare_ring_16", 1, 10), row("bare_ring_64", 1, 20),
                row("bare_ring_16", 2, 40), row("bare_ring_64", 2, 30)]
        _, _, sizes = next(report.curves(rows, []))
        self.assertEqual([r["p50_ns"] for r in sizes[8][("bare ring",)]], [10, 30])


class ALine(unittest.TestCase):
    SIZES = [8, 64, 512, 4096]

    def times(self, fixed, per_byte):
        return [fixed + per_byte * size for size in self.SIZES]

    def test_is_found_where_there_is_one(self):
        fixed, slope = report.fit_relative(self.SIZES, self.times(100, 0.25))
        self.assertAlmostEqual(fixed, 100)
        self.assertAlmostEqual(slope, 0.25)

    def test_follows_small_messages_as_much_as_large_ones(self):
        times = self.times(100, 0.25)
        times[-1] += 100  # a tenth of the largest: by absolute distances it would bend the line
        fixed, slope = report.fit_relative(self.SIZES, times)
        self.assertAlmostEqual(fixed, 100, delta=2)
        self.assertGreater(slope, 0.25)

    def test_has_a_rate_between_two_sizes(self):
        # 8 bytes in 8 ns, 64 in 32: rates 1 and 2, so 1.5 lies half way.
        self.assertEqual(report.size_at_rate([8, 64], [8, 32], 1.5), 36)
        self.assertEqual(report.size_at_rate(self.SIZES, self.times(0, 1), 0.5), 8)
        self.assertIsNone(report.size_at_rate(self.SIZES, self.times(100, 1), 1))

    def test_has_half_of_its_rate_where_it_says(self):
        sizes = list(range(1, 4000))
        times = [100 + 0.25 * n for n in sizes]
        fixed, slope = report.fit_relative(sizes, times)
        self.assertAlmostEqual(report.size_at_rate(sizes, times, 0.5 / slope), 400, places=3)


class AProgram(unittest.TestCase):
    """Of a shell that plays one."""

    def taking(self, script, proof=None):
        system = systems.System("s", "", proof=proof)
        system.command = lambda *_: ["sh", "-c", f"exec <$BENCH_STEPS/0\n{script}"]
        scratch = self.enterContext(run.tempfile.TemporaryDirectory())
        setup = types.SimpleNamespace(scratch=scratch, prefix=[], environment=lambda _: {})
        return run.Program(system, setup, 1)

    START = 'echo noise\necho \'{"rhythm":"start","p50_ns":1}\'\n'
    STEP = 'read step\necho \'{"rhythm":"pingpong","p50_ns":2}\'\n'

    def test_gives_the_row_of_a_step(self):
        program = self.taking(self.START + self.STEP)
        self.assertEqual(program.take(suites.Step("pingpong", 64), 0.1)["bytes"], 64)
        program.finish()

    def test_fails_with_what_it_said_last(self):
        with self.assertRaisesRegex(RuntimeError, "it is broken"):
            self.taking("echo it is broken >&2; exit 3")

    def test_is_absent_where_it_says_so(self):
        with self.assertRaisesRegex(systems.Absent, "no such provider"):
            self.taking("echo no such provider >&2; exit 77")

    def test_fails_in_the_end_when_a_rank_has_sent_nothing_over_the_ring(self):
        for packets, fails in (("12", False), ("0", True)):
            program = self.taking(f"{self.START}echo 'rank 0: {packets} packets sent' >&2",
                                  systems.OVER_RING)
            if fails:
                self.assertRaisesRegex(RuntimeError, "over the ring", program.finish)
            else:
                program.finish()


class ASuite(unittest.TestCase):
    def test_names_systems_that_there_are(self):
        for suite in suites.SUITES.values():
            for scene in suite.scenes:
                self.assertLessEqual(set(scene.systems.split()), set(systems.SYSTEMS), scene.name)

    def test_measures_what_its_targets_compare(self):
        for suite in suites.SUITES.values():
            scenes = {scene.name: scene for scene in suite.scenes}
            for each in suite.targets:
                scene = scenes[each.scene]
                self.assertLessEqual({each.ours, *each.theirs}, set(scene.systems.split()))
                self.assertIn(each.rhythm, {step.rhythm for step in scene.steps}, each.title)


if __name__ == "__main__":
    unittest.main()
