"""`disksla sweep --identify --table`: the medium of a table."""

import json
from pathlib import Path

import pytest

from disksla.commands.cli import main

Captured = pytest.CaptureFixture[str]

TABLE = (
    Path(__file__).resolve().parent.parent
    / "measure"
    / "benchmark"
    / "sweeps"
    / "storageio-hdd.csv"
)


def test_table_of_a_rotating_disk(capsys: Captured) -> None:
    assert main(["sweep", "--identify", "--table", str(TABLE)]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    text = " ".join(out.split())
    assert "storageio-hdd.csv: rotating disk with a cache" in text
    assert "one rotation at 7200 rpm" in text
    assert "4 KiB, queue depth 1: 100 IOPS, mean 10 ms" in text


def test_json_output(capsys: Captured) -> None:
    assert main(["sweep", "--identify", "--table", str(TABLE), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["medium"] == "rotating_with_cache"
    assert shown["limited"] is False
    assert shown["evidence"]["random"]["iops"] == 100
    assert shown["evidence"]["random"]["quantiles_seconds"] is None
    assert shown["contradictions"] == []


def test_inconclusive_table_exits_with_1(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "sequential.csv"
    path.write_text("".join(TABLE.read_text().splitlines(keepends=True)[:2]))
    assert main(["sweep", "--identify", "--table", str(path)]) == 1
    assert "unknown medium" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read {}: No such file or directory"),
        (b"\xff\xfe", "{}: not UTF-8 text"),
        (b"a,b\n", "{}: line 1: not a table of a sweep"),
    ],
)
def test_invalid_table_is_refused(
    content: bytes | None, message: str, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "table"
    if content is not None:
        path.write_bytes(content)
    assert main(["sweep", "--identify", "--table", str(path)]) == 2
    assert message.format(path) in capsys.readouterr().err


def test_disk_and_table_exclude_each_other() -> None:
    for arguments in (["sweep"], ["sweep", "--identify", "vda", "--table", str(TABLE)]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2


@pytest.mark.parametrize(
    "words", ["sweep --identify vda --csv=x.csv", "verify --latency vda --runtime=1s"]
)
def test_options_of_the_whole_measurement_are_refused(words: str, capsys: Captured) -> None:
    assert main(words.split()) == 2
    assert "expected one of them" in capsys.readouterr().err
