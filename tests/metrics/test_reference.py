"""docs/metrics.md."""

from pathlib import Path

from metrics_page import reference

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == reference(), "run `make docs`"


def test_rows_of_a_table_have_the_same_cells() -> None:
    tables = [
        section.splitlines() for section in reference().split("\n\n") if section.startswith("|")
    ]
    assert [{row.count("|") for row in rows} for rows in tables] == [{5}, {6}, {6}, {6}, {4}]
