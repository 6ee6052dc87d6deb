"""The page of a sweep in a browser."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from disksla.measure.benchmark.sweep_matrix import SweepRow
from disksla.measure.benchmark.sweep_page import sweep_html
from support.sweeps import HEADER, ROWS

WIDTHS = (1280, 500)

WIDE_ROWS = tuple(replace(row, iops=1234567.0, mean_latency_s=0.00000923) for row in ROWS)

MEASURE_PAGE = """<script>
const maps = [...document.querySelectorAll("table")].map(map => map.getBoundingClientRect());
const overlaps = maps.filter(map => maps.some(other => other !== map && other.top === map.top
  && other.left >= map.left && other.left < map.right)).length;
const page = document.documentElement;
document.title = [page.scrollWidth, page.clientWidth, overlaps].join(" ");
</script></body>"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="NOT TESTED: chromium is missing")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", [ROWS, WIDE_ROWS], ids=["rows", "wide rows"])
def test_page_fits_the_window(width: int, rows: tuple[SweepRow, ...], tmp_path: Path) -> None:
    """A script that only this test adds measures the page."""
    page = sweep_html(HEADER, rows, "2026-11-20")
    policy = re.compile(r"<meta http-equiv[^>]*>")
    path = tmp_path / "page.html"
    path.write_text(policy.sub("", page).replace("</body>", MEASURE_PAGE))
    shown = subprocess.run(
        [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *(f"--window-size={width},900", f"--user-data-dir={tmp_path / 'profile'}"),
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    title = re.search(r"<title>(\d+) (\d+) (\d+)</title>", shown)
    assert title is not None
    assert int(title[1]) <= int(title[2]) <= width
    assert title[3] == "0", "maps overlap"
