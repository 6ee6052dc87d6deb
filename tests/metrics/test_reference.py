from pathlib import Path

from disksla.metrics.reference import reference

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_document_is_fresh() -> None:
    assert DOCUMENT.read_text() == reference(), "run `make docs`"


def test_no_cell_breaks_its_table() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("|")]
    assert rows
    assert {row.count("|") for row in rows} == {5}
