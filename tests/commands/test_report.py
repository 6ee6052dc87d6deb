"""`disksla report` against a made-up server."""

import argparse
import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from disksla.commands._prometheus import add_period, period_of
from disksla.commands.cli import main
from disksla.measure.prometheus import Period
from support.report_api import Api, serving
from support.report_series import DiskSeries, Server

Captured = pytest.CaptureFixture[str]

PERIOD = ("--from", "2026-10-01", "--to", "2026-10-01T01:00:00Z")


@pytest.fixture
def api() -> Iterator[Api]:
    disk = DiskSeries()
    disk.scrape()
    disk.does(30, met=10.0)
    disk.does(20, below=6.0)
    with serving(Server(disk.series)) as api:
        yield api


def test_all_outputs(api: Api, tmp_path: Path, capsys: Captured) -> None:
    files = {name: tmp_path / f"report.{name}" for name in ("html", "csv")}
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    command = ["report", "--prometheus", api.address + "/", *PERIOD, *options]
    assert main(command) == 1
    assert "71.428 % of 7 min 00 s tested, 2 min 00 s less" in capsys.readouterr().out
    assert "NOT COMPLIANT" in files["html"].read_text()
    assert files["csv"].read_bytes().count(b"\r\n") == 2
    first = {name: path.read_bytes() for name, path in files.items()}
    assert main(command) == 1
    assert {name: path.read_bytes() for name, path in files.items()} == first


def test_period_up_to_now() -> None:
    parser = argparse.ArgumentParser()
    add_period(parser)
    arguments = parser.parse_args(["--last", "30d"])
    assert period_of(arguments, 1.8e9 + 61.5) == Period(1_800_000_060 - 30 * 86_400, 1_800_000_060)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "expected --last, or --from and --to"),
        (("--last", "1d", "--to", "2026-10-01"), "expected --last, or --from and --to"),
        (("--last", "1d", *PERIOD), "expected --last, or --from and --to"),
        (PERIOD[:2], "expected --last, or --from and --to"),
        (("--last", "5s"), "expected a minute or more"),
        (("--last", "long"), "expected a duration"),
    ],
)
def test_period_that_is_not_one(options: tuple[str, ...], expected: str, capsys: Captured) -> None:
    assert main(["report", "--prometheus", "http://127.0.0.1:1", *options]) == 2
    assert expected in capsys.readouterr().err


def test_json(api: Api, capsys: Captured) -> None:
    command = ["report", "--prometheus", api.address, *PERIOD, "--json", "--objective", "70"]
    assert main(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["is_compliant"] is True
    assert report["disks"][0]["totals"]["noncompliant_s"] == 120


def test_nothing_was_tested(api: Api, capsys: Captured) -> None:
    api.answers.series = DiskSeries().series
    idle = DiskSeries()
    idle.scrape()
    idle.does(30)
    api.answers.series = idle.series
    assert main(["report", "--prometheus", api.address, *PERIOD]) == 2
    assert "NOT TESTED: 1 disk, 0 tested" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "content", "header"),
    [
        ("token-file", "secret\n", "Bearer secret"),
        ("password-file", "me:secret\n", "Basic bWU6c2VjcmV0"),
    ],
)
def test_secrets_are_read_from_files(
    api: Api, tmp_path: Path, option: str, content: str, header: str
) -> None:
    file = tmp_path / "secret"
    file.write_text(content)
    command = ["report", "--prometheus", api.address, *PERIOD]
    assert main([*command, f"--prometheus.{option}", str(file)]) == 1
    assert {each["Authorization"] for each in api.headers} == {header}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--disk", "db-9:*"], "report failed: the server has no such disks in this period; see"),
        (["--match", "team"], "found --match 'team'; expected matchers such as {team="),
        (["--objective", "0"], "--objective: found '0'; expected a percentage above 0, up to 100"),
        (["--objective", "x"], "--objective: found 'x'; expected a percentage above 0, up to 100"),
        (["--prometheus", "db-1:9090"], "found --prometheus 'db-1:9090'; expected an address"),
        (["--prometheus", "http://me:secret@db-1"], "found --prometheus 'db-1'; expected"),
        (["--prometheus", "http://127.0.0.1:9"], "query of Prometheus failed: 127.0.0.1:9: Conn"),
        (["--prometheus.token-file", "/nonexistent"], "cannot read /nonexistent: "),
        (["--html", "/nonexistent/page"], "cannot write /nonexistent/page: No such file"),
        (["--from", "x"], "found --from 'x'; expected a date such as 2026-10-01"),
    ],
)
def test_failures(api: Api, capsys: Captured, options: list[str], message: str) -> None:
    assert main(["report", "--prometheus", api.address, *PERIOD, *options]) == 2
    problem = capsys.readouterr().err
    assert message in problem
    assert "secret" not in problem


def test_an_empty_secret_is_a_problem(api: Api, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "secret"
    file.write_text("\n")
    file.chmod(stat.S_IRUSR)
    command = ["report", "--prometheus", api.address, *PERIOD]
    assert main([*command, "--prometheus.token-file", str(file)]) == 2
    assert f"cannot use {file}: expected one line" in capsys.readouterr().err
