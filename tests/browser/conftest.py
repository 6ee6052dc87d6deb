"""Fixtures: a browser, the checkers, and a daemon for each situation."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from browser.chromium import Browser, Page, running
from browser.machine import SimulatedMachine
from browser.situations import SITUATIONS, Situation
from disksla.measure.benchmark.sweep_page import sweep_html
from disksla.measure.report.compliance_page import report_html as provider_html
from disksla.measure.verification.report_page import report_html
from support.daemon_process import DISKSLA, PATIENCE_S, Daemon
from support.example_report import a_day, extra, reported
from support.reports import RESULTS, a_report
from support.sweeps import HEADER, ROWS
from support.waiting import eventually

CHECKERS = Path(__file__).resolve().parents[2] / ".cache" / "pages" / "node_modules"
_HOUR_WITHIN_S = 90.0
"""The first minute of the last hour is complete after a minute."""


class Address(NamedTuple):
    """A page under test."""

    name: str
    url: str


def checker(path: str) -> Path:
    """Return a file of a checker; skip without it."""
    if not (CHECKERS / path).exists():
        pytest.skip(f"NOT TESTED: {path} is missing; .ci/need check installs it with npm")
    return CHECKERS / path


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if shutil.which("chromium") is None:
        pytest.skip("NOT TESTED: chromium is missing to open the pages")
    with running(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = Page(browser)
    yield page
    page.close()


@pytest.fixture(scope="package")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Daemon]]:
    """Return a daemon for each situation, when its disks have been sampled for some seconds."""
    with ExitStack() as stack:
        started = {
            name: start_situation(situation, tmp_path_factory.mktemp(name), stack)
            for name, situation in SITUATIONS.items()
        }
        for name, situation in SITUATIONS.items():
            text = situation.shows
            assert eventually(
                lambda n=name, t=text: t in started[n].get("/")[1],  # type: ignore[misc]
                PATIENCE_S,
                every_s=0.5,
            )
            if situation.reload is not None:
                assert started[name].request("POST", "/-/reload")[0] == 500
        yield started


def start_situation(situation: Situation, directory: Path, stack: ExitStack) -> Daemon:
    machine = SimulatedMachine(directory, situation.disks)
    stack.enter_context(machine.running())
    config, state = directory / "disksla.yml", directory / "state"
    state.mkdir()
    config.write_text(f"state: {{directory: {state}}}\n{situation.configuration}")
    process = stack.enter_context(
        subprocess.Popen(
            [
                *(str(DISKSLA), "serve", "--web.listen-address=127.0.0.1:0"),
                *("--web.unix-socket", ""),
                *(f"--config.file={config}", *machine.options),
            ],
            stdout=subprocess.PIPE,
            stderr=stack.enter_context((directory / "log").open("w")),
            text=True,
        )
    )
    daemon = Daemon(process, directory / "log")
    stack.callback(daemon.end)
    assert daemon.address, (directory / "log").read_text()
    assert eventually(lambda: daemon.get("/-/ready")[0] == 200, PATIENCE_S)
    if situation.reload is not None:
        config.write_text(situation.reload)
    return daemon


@pytest.fixture(scope="package")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the reports that commands write as HTML."""
    directory = tmp_path_factory.mktemp("reports")
    pages = {
        "verify": report_html(a_report(*RESULTS)),
        "sweep": sweep_html(HEADER, ROWS, "2026-11-20"),
        "report": provider_html(reported([*a_day().series, *extra()])),
    }
    for name, text in pages.items():
        (directory / f"{name}.html").write_text(text, encoding="utf-8")
    return sorted(directory.iterdir())


@pytest.fixture(scope="package")
def addresses(daemons: dict[str, Daemon], reports: list[Path]) -> list[Address]:
    """Return all pages: those of daemons, with the first minute of an hour, and reports."""
    paths = [(name, "/") for name in daemons]
    paths += [("idle", "/runbook"), ("busy", "/disk?name=vdb"), ("busy", "/disk?name=vdd")]
    paths += [("machine", "/disk?name=nvme1n1")]
    for name, path in paths:
        if path.startswith("/disk"):
            assert eventually(
                lambda n=name, p=path: "Last hour" in daemons[n].get(p)[1],  # type: ignore[misc]
                _HOUR_WITHIN_S,
                every_s=1.0,
            )
    live = [Address(f"{n}{path}", f"http://{daemons[n].address}{path}") for n, path in paths]
    return live + [Address(report.name, report.as_uri()) for report in reports]
