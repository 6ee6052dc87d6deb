"""A disk has fewer than 200 series with every feature, as documented in docs/fleet.md."""

import re
from pathlib import Path

from disksla.metrics.collector import make_registry
from disksla.metrics.reference import OF_DISKS
from disksla.metrics.render import render_metrics
from fleet.largest_disk import disks_by_feature, largest_disk, longest_report
from fleet.playback import ABOUT, OPENMETRICS, page_of, parse_page
from support.snapshots import view

PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"
MOST_SERIES = 200
REASONS = {"disksla_probe_skipped", "disksla_probe_failures"}


def test_largest_disk_has_fewer_than_200_series() -> None:
    page = parse_page(page_of(view(largest_disk()), longest_report()))
    assert len({sample.text for sample in page.disk}) == len(page.disk)
    assert 180 < len(page.disk) < MOST_SERIES


def test_largest_disk_has_all_metrics_of_disks() -> None:
    page = parse_page(page_of(view(largest_disk()), longest_report()))
    families = {sample.family for sample in page.disk}
    assert families | REASONS >= {row.name.removesuffix("_total") for row in OF_DISKS}


def test_documented_names_select_twelve_series() -> None:
    [names] = re.findall(r"'name\[\]': \[(.*)\]", PAGE.read_text(encoding="utf-8"))
    registry = make_registry(lambda: view(largest_disk()), lambda: ABOUT)
    page = render_metrics(registry, OPENMETRICS, names=names.split(", ")).body.decode()
    assert len(parse_page(page).disk) == 12


def test_documented_series_by_feature() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before = 0
    for what, (disk, report) in disks_by_feature().items():
        series = len(parse_page(page_of(view(disk), report)).disk)
        assert f"| {what} | {series - before:+d} | {series} |" in text
        before = series
