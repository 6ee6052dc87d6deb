"""docs/metrics.md."""

from pathlib import Path

from disksla.metrics.reference import reference

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == reference(), "run `make docs`"


def test_table_rows_have_four_cells() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("|")]
    assert rows
    assert {row.count("|") for row in rows} == {5}
