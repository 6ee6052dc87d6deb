"""The pictures in docs/ show what the pages, the dashboard and `disksla top` show today."""

from pictures.sources import RECORD, ROOT, SOURCES, changed, hashes


def test_changed_added_and_removed_files_are_named() -> None:
    assert changed("1  same\n2  other\n3  gone\n", "1  same\n4  other\n5  new\n") == [
        "gone",
        "new",
        "other",
    ]


def test_each_pattern_names_files() -> None:
    assert [pattern for pattern in SOURCES if not [*ROOT.glob(pattern)]] == []


def test_pictures_are_as_new_as_their_sources() -> None:
    assert not changed(RECORD.read_text(encoding="utf-8"), hashes()), "run `make pictures`"
