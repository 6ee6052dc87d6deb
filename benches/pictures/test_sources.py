"""The pictures in docs/ show what the pages, the dashboard and `disksla top` show today."""

from pictures.sources import RECORD, changed, hashes


def test_changed_added_and_removed_files_are_named() -> None:
    assert changed("1  same\n2  other\n3  gone\n", "1  same\n4  other\n5  new\n") == [
        "gone",
        "new",
        "other",
    ]


def test_each_source_is_hashed() -> None:
    paths = [line.partition("  ")[2] for line in hashes().splitlines()]
    assert "grafana/out/dashboards/disk.json" in paths
    assert "exporter/disksla/web/page.css" in paths
    assert "tests/top/screens.txt" in paths


def test_pictures_are_as_new_as_their_sources() -> None:
    assert not changed(RECORD.read_text(encoding="utf-8"), hashes()), "run `make pictures`"
