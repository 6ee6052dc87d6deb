"""The page of a verification report in a browser."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from disksla.verification.report_html import report_html
from support.reports import RESULTS, a_report


@pytest.mark.skipif(
    shutil.which("chromium") is None, reason="NOT TESTED: chromium is missing to draw the page"
)
@pytest.mark.parametrize("width", [1280, 390])
def test_page_fits_the_width_of_the_browser(tmp_path: Path, width: int) -> None:
    """A page that is too wide for a phone scrolls sideways."""
    page = tmp_path / "page.html"
    probe = "<iframe></iframe>"
    text = report_html(a_report(*RESULTS))
    assert probe not in text
    script = (
        "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth"
        "</script>"
    )
    policy = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
    page.write_text(policy.sub("", text).replace("</body>", f"{script}</body>"))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    home = {**os.environ, "HOME": str(tmp_path)}
    process = subprocess.run(
        [*command, f"--window-size={width},900", page.as_uri()],
        check=True,
        capture_output=True,
        text=True,
        env=home,
        timeout=60,
    )
    found = re.search(r"<title>(\d+) of (\d+)</title>", process.stdout)
    assert found is not None, process.stderr
    assert int(found[1]) <= int(found[2])
