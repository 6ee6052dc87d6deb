"""A tick that fails is counted, and is a problem of the sampler until the next good tick."""

from collections.abc import Collection
from pathlib import Path

import pytest

from disksla.base.operating_system.machine import Roots
from disksla.promise.configuration import Configuration
from disksla.promise.configuration.settings import Settings
from disksla.state.pipeline.sampler import Sampler
from disksla.state.pipeline.sampler_stats import SamplerStats
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import Tick
from support.simulated_host import CATALOG, a_disk

LINE = " 254 0 vda 1 0 8 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
AT_MOST_S = 60.0


@pytest.fixture
def paths(tmp_path: Path) -> Roots:
    (tmp_path / "diskstats").write_text(LINE)
    (tmp_path / "stat").write_text("cpu  100 0 50 1000 250 0 0 0 0 0\n")
    return Roots(procfs=tmp_path, sysfs=tmp_path)


def sample(
    paths: Roots, ticks: int, failing: Collection[int]
) -> tuple[Sampler, list[SamplerStats]]:
    """Return a sampler after this many ticks, and its statistics before each of them."""
    before: list[SamplerStats] = []

    def on_tick(_: Tick) -> None:
        before.append(sampler.state.sampler_stats)
        if len(before) == ticks:
            sampler.stop()
        if len(before) - 1 in failing:
            raise RuntimeError(f"out of order at {len(before) - 1}")

    sampler = Sampler(paths, State(Configuration(Settings(), CATALOG)), on_tick=on_tick)
    sampler.post((a_disk("vda"),))
    sampler.run_for(AT_MOST_S)
    return sampler, before


def test_failed_ticks_are_counted_until_a_good_one_clears_the_problem(paths: Roots) -> None:
    sampler, before = sample(paths, 7, failing={2, 3, 5})
    after = [*before[1:], sampler.state.sampler_stats]
    assert [stats.errors["sampler"] for stats in after] == [0, 0, 1, 2, 2, 3, 3]
    assert [stats.collectors["sampler"] for stats in after] == [
        *(True, True, False, False),
        *(True, False, True),
    ]
    assert [stats.ticks for stats in after] == [1, 2, 2, 2, 3, 3, 4]
    assert after[3].problems == {"sampler": "out of order at 3"}


def test_failed_tick_counts_no_error_of_another_source_and_keeps_its_problem(paths: Roots) -> None:
    (paths.procfs / "diskstats").unlink()
    (paths.procfs / "diskstats").mkdir()
    sampler, before = sample(paths, 3, failing={1, 2})
    stats = sampler.state.sampler_stats
    assert (stats.errors["diskstats"], stats.errors["sampler"]) == (1, 2)
    assert stats.problems == {**before[1].problems, "sampler": "out of order at 2"}
    assert "diskstats" in stats.problems
