# SPDX-License-Identifier: Apache-2.0
"""How bench/mpi/run judges what it has measured."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import types
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench/mpi"
sys.path.insert(0, str(BENCH))

import report  # noqa: E402
import variants  # noqa: E402

loader = importlib.machinery.SourceFileLoader("run", str(BENCH / "run"))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
loader.exec_module(run)


def figure(variant, number, ns, size=8, **more):
    return {"scene": "s", "figure": "f", "bytes": size, "variant": variant, "round": number,
            "p50_ns": ns, **more}


def target(**changes):
    return report.Target(**{"title": "t", "scene": "s", "figure": "f", "ours": "a",
                            "theirs": ["b", "c"], "limit": 1.0, **changes})


class ATarget(unittest.TestCase):
    def test_takes_the_ratio_within_a_round(self):
        figures = report.Figures([figure("a", 1, 100), figure("b", 1, 200), figure("a", 2, 300),
                                  figure("b", 2, 600), figure("a", 3, 1), figure("b", 4, 1)])
        self.assertEqual(target().measured(figures), (0.5, 0.5, 0.5, 2, 8))

    def test_compares_with_the_best_of_several(self):
        figures = report.Figures([figure("a", 1, 100), figure("b", 1, 200), figure("c", 1, 50)])
        self.assertEqual(target().measured(figures)[0], 2.0)

    def test_tells_the_worst_of_several_sizes(self):
        several = [figure("a", 1, 100), figure("b", 1, 200),
                   figure("a", 1, 90, 64), figure("b", 1, 100, 64)]
        self.assertEqual(target().measured(report.Figures(several))[4], 64)
        self.assertEqual(target(how="speed").measured(report.Figures(several))[4], 64)

    def test_does_not_count_the_way_back_of_an_answer(self):
        figures = report.Figures([figure("a", 1, 300, ack_ns=100), figure("b", 1, 500, ack_ns=100)])
        self.assertEqual(target().measured(figures)[0], 0.5)

    def test_prefers_means_free_of_the_clock(self):
        figures = report.Figures([figure("a", 1, 99, batch_p50_ns=50),
                                  figure("b", 1, 99, batch_p50_ns=100)])
        self.assertEqual(target().measured(figures)[0], 0.5)

    def test_of_p10_takes_the_samples_disturbed_least(self):
        figures = [figure("a", 1, 99, p10_ns=10), figure("b", 1, 100, p10_ns=20), figure("c", 1, 1)]
        self.assertEqual(target().measured(report.Figures(figures, "p10"))[0], 0.5)

    def test_is_nothing_where_one_side_is_missing(self):
        self.assertIsNone(target().measured(report.Figures([figure("a", 1, 1)])))

    def test_of_speed_is_met_from_its_limit_on(self):
        self.assertTrue(target(how="speed").is_met(1.5))
        self.assertFalse(target(how="speed").is_met(0.5))
        self.assertTrue(target(limit=1.2).is_met(1.2))


class ARun(unittest.TestCase):
    scene = types.SimpleNamespace(ranks=2, arguments=lambda setup: [])
    setup = types.SimpleNamespace(scratch="/", path="/usr/bin:/bin", timeout=20)

    def says(self, text, status=0, proof=None):
        variant = variants.Variant("v", "openmpi", proof=proof)
        variant.start = lambda *_: ["sh", "-c", f"echo '{text}'; exit {status}"]
        return run.measure(variant, self.scene, self.setup)

    FIGURE = '{"figure":"f","bytes":8,"p50_ns":1}'

    def test_gives_the_figures_of_its_program(self):
        self.assertEqual(self.says("noise\n" + self.FIGURE),
                         [{"figure": "f", "bytes": 8, "p50_ns": 1, "variant": "v"}])

    def test_fails_when_a_rank_has_sent_nothing_over_the_ring(self):
        def sent(of_second):
            told = ("rank 0: 12 packets sent, 3 received\n"
                    f"rank 1: {of_second} packets sent, 3 received\n")
            return self.says(told + self.FIGURE, proof=variants.OVER_RING)
        self.assertEqual(len(sent(7)), 1)
        with self.assertRaisesRegex(RuntimeError, "over the ring"):
            sent(0)

    def test_fails_with_what_its_program_said_last(self):
        with self.assertRaisesRegex(RuntimeError, "status 3: it is broken"):
            self.says("it is broken", 3)

    def test_fails_without_figures(self):
        with self.assertRaisesRegex(RuntimeError, "no figures"):
            self.says("hello")


class AScene(unittest.TestCase):
    def test_names_variants_that_there_are(self):
        for scene in variants.SCENES:
            self.assertLessEqual(set(scene.variants.split()), set(variants.BY_NAME), scene.name)

    def test_measures_what_the_targets_compare(self):
        scenes = {scene.name: scene for scene in variants.SCENES}
        for each in report.targets():
            measured = scenes[each.scene].variants.split()
            self.assertLessEqual({each.ours, *each.theirs}, set(measured), each.title)


if __name__ == "__main__":
    unittest.main()
