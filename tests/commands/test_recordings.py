"""The commands record, replay, explain --recording and once."""

import gzip
import json
import re
from pathlib import Path

import pytest

from disksla.commands.cli import main
from disksla.commands.replay import LONGEST_LINE_BYTES
from support.fake_host import FakeMachine

ROW = """
terms:
  - {id: acme.disk, title: A disk, provider: acme, provider_name: Acme, budget: sum,
     read_iops: {rule: clamp, base: 700}, write_iops: {rule: clamp, base: 700},
     examples: [{size_bytes: 1GiB, rates: {read_iops: 700, write_iops: 700}}]}
"""
HOST = Path(__file__).parent.parent / "hosts" / "counter-wrap" / "ticks.jsonl"

Captured = pytest.CaptureFixture[str]


def test_replay_prints_a_summary(capsys: Captured) -> None:
    assert main(["replay", str(HOST)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "21 ticks in 2.0 s, 20 windows assessed; gaps: 1 reset"
    assert lines[1].split()[:2] == ["device", "terms"]
    assert lines[2].split()[:3] == ["vda", "unknown", "type"]
    assert max(map(len, lines)) <= 80
    assert any("share of time" in line for line in lines)
    assert any("% idle" in line or "% OK" in line for line in lines)


def test_replay_json_has_a_record_of_each_window_that_is_decided(capsys: Captured) -> None:
    assert main(["replay", "--json", str(HOST)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert 2 * 21 - 10 < len(rows) <= 2 * 21
    assert {row["device"] for row in rows} == {"vda", "vdb"}
    assert len({(row["device"], row["monotonic_s"]) for row in rows}) == len(rows)
    assert [row["gap"] for row in rows if row["gap"]] == ["start", "start", "reset"]


def test_replay_says_who_used_a_disk(tmp_path: Path, capsys: Captured) -> None:
    lines = HOST.read_bytes().splitlines()
    tick = json.loads(lines[3])
    now_s = tick["clocks"]["monotonic_s"]
    tick["watched_s"] = {"vda": [now_s - 1.0, now_s]}
    tick["consumers"] = [
        ["vda", "a.service", "x", 50.0, None],
        ["vda", "a.service", "y", 30.0, None],
        ["vda", "b.service", "", 20.0, None],
        ["vda", "b.service", "", None, 4096.0],
    ]
    lines[3] = json.dumps(tick).encode()
    file = tmp_path / "ticks.jsonl"
    file.write_bytes(b"\n".join([*lines, b""]))
    assert main(["replay", str(file)]) == 0
    said = "by requests 80% a.service, 20% b.service; by bytes 100% b.service"
    out = " ".join(capsys.readouterr().out.split())
    assert f"vda was used while throttled or busy: {said}" in out
    assert main(["replay", "--json", str(file)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["consumers"] for row in rows if "consumers" in row][-1] == [
        ["vda", "a.service", "x", 50.0, None],
        ["vda", "a.service", "y", 30.0, None],
        ["vda", "b.service", "", 20.0, 4096.0],
    ]


def test_replay_reads_a_compressed_recording(tmp_path: Path, capsys: Captured) -> None:
    compressed = tmp_path / "ticks.jsonl.gz"
    compressed.write_bytes(gzip.compress(HOST.read_bytes()))
    main(["replay", str(HOST)])
    plain = capsys.readouterr().out
    assert main(["replay", str(compressed)]) == 0
    assert capsys.readouterr().out == plain


def damaged(place: int) -> bytes:
    content = bytearray(gzip.compress(HOST.read_bytes()))
    content[place] ^= 0xFF
    return bytes(content)


HEADER = HOST.read_bytes().splitlines(keepends=True)[0]
LONG_LINE = b" " * (LONGEST_LINE_BYTES + 1)
"""3 GiB of blanks would be 3 MB when they are compressed."""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: invalid header of a recording"),
        (HOST.read_bytes()[:200], "line 2: invalid tick"),
        (HOST.read_bytes() + b"{}\n", "line 23: invalid tick"),
        (gzip.compress(HOST.read_bytes())[:-100], "line 20: cannot uncompress it: "),
        *((damaged(place), r"line \d+: cannot uncompress it: ") for place in (3, 20, 300, -2)),
        (gzip.compress(LONG_LINE), "line 1: found a longer line; expected at most 8 MiB"),
        (gzip.compress(HEADER + LONG_LINE), "line 2: found a longer line; expected at most 8 MiB"),
    ],
    ids=range(10),
)
def test_replay_names_the_line_of_an_error(
    content: bytes, message: str, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / ("ticks.jsonl.gz" if content[:1] == b"\x1f" else "ticks.jsonl")
    file.write_bytes(content)
    assert main(["replay", str(file)]) == 2
    assert re.search(f"disksla: {file}: {message}", capsys.readouterr().err)


def test_replay_of_a_missing_file(tmp_path: Path, capsys: Captured) -> None:
    assert main(["replay", str(tmp_path / "none")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_replay_of_a_recording_without_a_sample(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "ticks.jsonl"
    file.write_bytes(HEADER)
    assert main(["replay", str(file)]) == 0
    assert "no sample" in capsys.readouterr().out


def test_record_then_replay(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "ticks.jsonl"
    assert main(["record", str(file), "--for", "300ms"]) == 0
    assert str(file) in capsys.readouterr().err
    assert main(["replay", str(file)]) == 0
    assert "ticks in" in capsys.readouterr().out


def test_recording_carries_the_configuration(tmp_path: Path, capsys: Captured) -> None:
    host, elsewhere = FakeMachine(tmp_path), tmp_path / "elsewhere.yml"
    (tmp_path / "catalog.d").mkdir()
    (tmp_path / "catalog.d" / "acme.yml").write_text(ROW)
    host.config.write_text("disks: [{match: {serial: vol-1}, terms: acme.disk}]\n")
    file = tmp_path / "ticks.jsonl"
    assert main(["record", str(file), "--for", "300ms", *host.options]) == 0
    host.config.unlink()
    (tmp_path / "catalog.d" / "acme.yml").unlink()
    capsys.readouterr()
    assert main(["replay", str(file)]) == 0
    assert "vdx acme.disk" in " ".join(capsys.readouterr().out.split())
    assert main(["explain", "vdx", "--recording", str(file)]) == 0
    assert "terms acme.disk: A disk, Acme" in " ".join(capsys.readouterr().out.split())
    elsewhere.write_text("disks: [{match: {device: vdx}, terms: vk.ceph-ssd, size: 100GiB}]\n")
    assert main(["replay", str(file), f"--config.file={elsewhere}"]) == 0
    assert "vdx vk.ceph-ssd" in " ".join(capsys.readouterr().out.split())


def test_invalid_configuration_in_a_recording_is_named(tmp_path: Path, capsys: Captured) -> None:
    header, *ticks = HOST.read_bytes().splitlines(keepends=True)
    for configuration, message in (
        (
            {"settings": "discovery: {exclude: ['(']}"},
            "line 1: configuration:1: discovery.exclude",
        ),
        ({"settings": " " * 2**21}, "line 1: found a configuration above 1 MiB"),
        ({"catalog": {"/a.yml": "terms: [{}]"}}, "/a.yml:1: terms[0].id: missing"),
    ):
        file = tmp_path / "ticks.jsonl"
        changed = json.dumps(json.loads(header) | {"configuration": configuration}).encode()
        file.write_bytes(b"".join((changed, b"\n", *ticks)))
        assert main(["replay", str(file)]) == 2
        assert f"disksla: {file}: {message}" in capsys.readouterr().err


def test_record_does_not_overwrite(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "precious"
    file.write_text("data")
    assert main(["record", str(file), "--for", "1s"]) == 2
    assert "already exists" in capsys.readouterr().err
    assert file.read_text() == "data"
    assert main(["record", str(tmp_path / "no" / "where")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_duration_without_unit_is_rejected(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["record", "file", "--for", "10"])
    assert ended.value.code == 2
    assert "expected a duration such as" in capsys.readouterr().err


def test_once_prints_metrics(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["serve", "--once", "--for", "300ms"]) == 0
    assert b"disksla_sampler_ticks_total" in capsysbinary.readouterr().out
