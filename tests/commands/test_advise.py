"""The command advise: tables, sentences, JSON and errors, on recordings of throttled disks."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from disksla.cli import main

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "tests" / "lab" / "recordings"
EXAMPLE = ("steady-90", "--terms", "vk.ceph-hdd", "--size", "100GiB")
"""That of docs/advise.md."""

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def advise(recording: str, *arguments: str) -> int:
    directory = RECORDINGS / recording
    config = str(directory / "config.yml")
    file = str(directory / "ticks.jsonl.gz")
    return main(["advise", "--recording", file, "--config.file", config, *arguments])


def text(captured: Captured) -> str:
    """Return what was printed, in one line."""
    out = captured.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    return " ".join(out.split())


def document(captured: Captured) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(captured.readouterr().out)
    return found


def test_example_of_the_documentation(capsys: Captured) -> None:
    page = (ROOT / "docs" / "advise.md").read_text(encoding="utf-8")
    [shown] = re.findall(
        r"^```console\n\$ disksla advise [^\n]*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    assert advise(*EXAMPLE) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert "\n".join(lines) + "\n" == shown.replace("vdb", "loop0")


def test_least_size_that_is_enough(capsys: Captured) -> None:
    assert advise(*EXAMPLE) == 0
    assert "Enough: vk.ceph-hdd, 461 GiB; as it is, it would be throttled for" in text(capsys)


def test_a_disk_that_is_enough_as_it_is(capsys: Captured) -> None:
    arguments = ("--terms", "aws.io1", "--size", "100GiB", "--iops", "500")
    assert advise("steady-90", *arguments) == 0
    out = text(capsys)
    assert "loop0, aws.io1, 100 GiB, with 500 IOPS: 10.5 s recorded" in out
    assert "The disk is enough as it is." in out


def test_a_recording_that_was_throttled_does_not_contain_the_answer(capsys: Captured) -> None:
    assert advise("sqlite-delete", "--terms", "vk.ceph-hdd", "--size", "100GiB") == 1
    out = text(capsys)
    assert "No vk.ceph-hdd of this size or larger is certain to be enough" in out
    assert "the load may have asked for more than it was given" in out


def test_another_type_is_enough(capsys: Captured) -> None:
    arguments = ("--terms", "aws.standard", "--size", "100GiB")
    assert advise("steady-90", *arguments) == 0
    out = text(capsys)
    assert "No aws.standard of this size or larger is certain to be enough" in out
    assert "Least performance of all types that is enough: aws.gp2, 127 GiB." in out


def test_the_least_that_may_be_enough(capsys: Captured) -> None:
    arguments = ("--terms", "aws.gp2", "--size", "50GiB", "--tolerance", "0")
    assert advise("sync-writer", *arguments) == 0
    assert "0 to" in text(capsys)


def test_json_has_ranges_in_base_units(capsys: Captured) -> None:
    assert advise(*EXAMPLE, "--json") == 0
    found = document(capsys)
    assert found["devices"] == ["loop0"]
    assert found["present"]["limits"]["read_iops"] == 300
    assert found["present"]["answer"] == "not enough"
    assert 0 < found["present"]["throttled_share"]["least"] < 1
    assert found["enough"] == found["enough_of_type"]
    assert found["enough"]["size_bytes"] == 461 * 2**30
    assert found["machine"] == []


def test_machine_that_would_throttle_first(capsys: Captured) -> None:
    arguments = ("--terms", "vk.high-iops", "--size", "100GiB")
    assert advise("machine-two-busy", *arguments) == 1
    out = text(capsys)
    assert "2 all disks of the machine" in out
    assert "The machine would throttle for" in out
    assert advise("machine-two-busy", *arguments, "--json") == 1
    [group] = document(capsys)["machine"]
    assert group["devices"] == ["loop0", "loop1"]
    assert group["machines"][0]["machine"] is None


def on_machine(tmp_path: Path, machine: str, **entry: Any) -> tuple[str, ...]:
    """Return the arguments of a recording of a volume of AWS on a machine."""
    config = tmp_path / "config.yml"
    disk = {"match": {"device": "loop0"}, "terms": "aws.gp3", "size": "100GiB", **entry}
    config.write_text(
        json.dumps({"machine": {"type": machine}, "disks": [disk]}), encoding="utf-8"
    )
    return "--config.file", str(config)


def test_machine_of_the_tables_that_would_throttle_first(tmp_path: Path, capsys: Captured) -> None:
    assert advise("steady-90", *on_machine(tmp_path, "m5.large", iops=4000)) == 0
    out = text(capsys)
    assert "gp3 (now) 100 GiB 4000 IOPS 4000 0 % enough" in out
    assert "The m5.large would throttle first: it allows the disk 3600 IOPS of this load." in out


def test_larger_machine_that_is_enough(tmp_path: Path, capsys: Captured) -> None:
    assert advise("steady-90", *on_machine(tmp_path, "t3.nano")) == 0
    out = text(capsys)
    assert "Enough of a machine: t3.micro; the t3.nano would throttle for 0 to" in out


def test_disks_that_share_the_limits_of_their_type(tmp_path: Path, capsys: Captured) -> None:
    config = tmp_path / "config.yml"
    disks = [{"match": {"device": f"loop{each}"}, "terms": "gcp.pd-ssd"} for each in range(2)]
    config.write_text(json.dumps({"disks": disks}), encoding="utf-8")
    assert advise("machine-two-busy", "--config.file", str(config), "--json") in {0, 1}
    found = document(capsys)
    assert found["devices"] == ["loop0", "loop1"]
    assert found["machine"] == []


def test_a_disk_that_is_not_monitored(tmp_path: Path, capsys: Captured) -> None:
    config = tmp_path / "config.yml"
    config.write_text("discovery: {include: ['^loop1$']}", encoding="utf-8")
    assert advise("machine-two-busy", "loop0", "--config.file", str(config)) == 2
    assert "loop0 is not monitored: not in discovery.include" in capsys.readouterr().err


def test_a_disk_may_be_named(capsys: Captured) -> None:
    assert advise("machine-two-busy", "loop0", "--terms", "vk.high-iops") == 1
    assert "loop0, vk.high-iops" in text(capsys)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "cannot advise on loop0: its terms are configuration, so that its provider"),
        (("--size", "1GiB"), "found --size or provisioned values; expected them with --terms"),
        (("--terms", "aws.io1"), "aws.io1 needs provisioned IOPS"),
        (("--terms", "aws.gp9"), "unknown terms 'aws.gp9'"),
        (("--tolerance", "lots"), "--tolerance: found 'lots'; expected a percentage"),
        (("--tolerance", "101%"), "--tolerance: found '101%'; expected a percentage"),
        (("vdz", "--terms", "aws.gp3"), "no disk named 'vdz'"),
    ],
)
def test_invalid_questions(arguments: tuple[str, ...], message: str, capsys: Captured) -> None:
    assert advise("steady-90", *arguments) == 2
    assert message in capsys.readouterr().err


def test_a_recording_without_windows(tmp_path: Path, capsys: Captured) -> None:
    host = ROOT / "tests" / "hosts" / "counter-wrap" / "ticks.jsonl"
    first = host.read_text(encoding="utf-8").splitlines(keepends=True)[:2]
    file = tmp_path / "ticks.jsonl"
    file.write_text("".join(first), encoding="utf-8")
    assert main(["advise", "--recording", str(file)]) == 2
    assert "found no window in the recording" in capsys.readouterr().err


SERIES = ("--from", "2026-10-01", "--to", "2026-10-02", "--terms", "aws.gp3", "--size", "1TiB")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "advise needs one of --recording and --prometheus"),
        (("vdb", "--prometheus", "http://localhost:1"), "--prometheus needs DEVICE"),
        (("vdb", "--prometheus", "localhost:1", *SERIES), "expected an address such as"),
        (("vdb", "--prometheus", "http://localhost:1", *SERIES), "--prometheus is right"),
    ],
)
def test_invalid_questions_on_series(
    arguments: tuple[str, ...], message: str, capsys: Captured
) -> None:
    assert main(["advise", *arguments]) == 2
    assert message in capsys.readouterr().err
