"""`disksla identify --from`: the medium behind a table."""

import json
from pathlib import Path

import pytest

from disksla.cli import main

TABLE = Path(__file__).resolve().parent.parent / "benchmark" / "sweeps" / "storageio-hdd.csv"


def test_a_table_of_a_rotating_disk(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["identify", "--from", str(TABLE)]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    words = " ".join(out.split())
    assert "storageio-hdd.csv: a rotating disk with a cache" in words
    assert "one turn of a platter at 7200 rpm" in words
    assert "4 KiB, 1 at a time: 100 IOPS, mean 10 ms" in words


def test_a_table_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["identify", "--from", str(TABLE), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["medium"] == "rotating_with_cache"
    assert shown["limited"] is False
    assert shown["evidence"]["random"]["iops"] == 100
    assert shown["evidence"]["random"]["quantiles_seconds"] is None
    assert shown["contradictions"] == []


def test_a_table_that_does_not_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sequential.csv"
    path.write_text("".join(TABLE.read_text().splitlines(keepends=True)[:2]))
    assert main(["identify", "--from", str(path)]) == 1
    assert "cannot tell" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read {}: No such file or directory"),
        (b"\xff\xfe", "{}: not text"),
        (b"a,b\n", "{}: line 1: not the table of a sweep"),
    ],
)
def test_what_is_no_table_is_refused(
    content: bytes | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table"
    if content is not None:
        path.write_bytes(content)
    assert main(["identify", "--from", str(path)]) == 2
    assert words.format(path) in capsys.readouterr().err


def test_a_disk_or_a_table_is_needed() -> None:
    for words in (["identify"], ["identify", "vda", "--from", str(TABLE)]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
