"""docs/metrics.md."""

import pytest

from metrics_page import PAGE, reference, rewritten


def test_document_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_metric_of_the_document_does_not_vanish() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert rewritten(page) == page
    row = "| `disksla_former_total` | counter | `device` | lean | Requests. |"
    with pytest.raises(SystemExit, match=": disksla_former_total gone from"):
        rewritten(f"{page}{row}\n")


def test_rows_of_a_table_have_the_same_cells() -> None:
    tables = [
        section.splitlines() for section in reference().split("\n\n") if section.startswith("|")
    ]
    assert [{row.count("|") for row in rows} for rows in tables] == [{5}, {6}, {6}, {6}, {4}, {5}]
