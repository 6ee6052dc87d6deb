"""Sections of dashboards that pictures are taken of."""

import pytest

from pictures.dashboard import IOPS, Section, panels_of


def test_section_is_whole_lines_of_panels_that_can_be_drawn() -> None:
    panels = panels_of(IOPS)
    assert {panel["type"] for panel in panels} == {"row", "stat", "timeseries"}
    titles = [panel["title"] for panel in panels]
    assert titles[:2] == ["State", "Share of the time"]
    assert titles[-3:] == ["Read IOPS", "Write IOPS", "Total IOPS and observed ceiling"]


@pytest.mark.parametrize("title", ["Terms of the disk", "Serial"])
def test_unknown_title_is_an_error(title: str) -> None:
    with pytest.raises(ValueError, match="unpack"):
        panels_of(Section("", "disk", title, "Load"))
