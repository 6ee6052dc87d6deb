"""A disk costs a fleet fewer than 200 series, whatever is configured."""

import re
from pathlib import Path

from disksla.metrics.collector import make_registry
from disksla.metrics.reference import OF_DISKS
from disksla.metrics.render import render_metrics
from fleet.fullest import built_up, fullest_disk, fullest_report
from fleet.reel import ABOUT, OPENMETRICS, page_of, taken_apart
from support.snapshots import view

PAPER = Path(__file__).parents[2] / "docs" / "fleet.md"
MOST_SERIES = 200
REASONS = {"disksla_probe_skipped", "disksla_probe_failures"}


def test_the_fullest_disk_stays_below_200_series() -> None:
    page = taken_apart(page_of(view(fullest_disk()), fullest_report()))
    assert len({sample.text for sample in page.disk}) == len(page.disk)
    assert 180 < len(page.disk) < MOST_SERIES


def test_the_fullest_disk_has_something_of_everything() -> None:
    page = taken_apart(page_of(view(fullest_disk()), fullest_report()))
    told = {sample.family for sample in page.disk}
    assert told | REASONS >= {row.name.removesuffix("_total") for row in OF_DISKS}


def test_nine_series_are_enough_for_verdicts() -> None:
    [names] = re.findall(r"'name\[\]': \[(.*)\]", PAPER.read_text(encoding="utf-8"))
    registry = make_registry(lambda: view(fullest_disk()), lambda: ABOUT)
    page = render_metrics(registry, OPENMETRICS, names=names.split(", ")).body.decode()
    assert len(taken_apart(page).disk) == 9


def test_the_paper_says_what_makes_how_many_series() -> None:
    told = PAPER.read_text(encoding="utf-8")
    before = 0
    for what, (disk, report) in built_up().items():
        series = len(taken_apart(page_of(view(disk), report)).disk)
        assert f"| {what} | {series - before:+d} | {series} |" in told
        before = series
