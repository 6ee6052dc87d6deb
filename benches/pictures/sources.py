"""Files that the pictures show, and their hashes when the pictures were taken."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "docs" / "pictures" / "sources.sha256"
"""Of the form that `sha256sum --check` reads from the root of the repository."""
SOURCES = (
    "exporter/disksla/tell/html_page.*",
    "exporter/disksla/tell/printed_page.py",
    "exporter/disksla/tell/explanation/condition.py",
    "exporter/disksla/tell/explanation/sentences.py",
    "exporter/disksla/tell/explanation/who.py",
    "exporter/disksla/tell/explanation/words.py",
    "exporter/disksla/serve/pages/*page.*",
    "exporter/disksla/serve/pages/*charts.*",
    "grafana/out/dashboards/disk.json",
    "tests/tell/top/screens.txt",
)
"""Patterns. The last file is what `disksla top` shows of one state."""


def hashes() -> str:
    """Return a line for each file: its SHA-256 and its path."""
    files = sorted({file for pattern in SOURCES for file in ROOT.glob(pattern)})
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(ROOT)}\n"
        for file in files
    )


def changed(recorded: str, now: str) -> list[str]:
    """Return the paths of files that were added, removed or changed since."""
    lines = set(recorded.splitlines()) ^ set(now.splitlines())
    return sorted({line.partition("  ")[2] for line in lines})
