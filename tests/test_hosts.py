"""Replay of the recorded machines in tests/hosts, compared with their expected output."""

from collections.abc import Callable
from pathlib import Path

import pytest

from disksla.commands.cli import main

HOSTS = Path(__file__).parent / "hosts"
RECORDED = sorted(path.parent for path in HOSTS.glob("*/ticks.jsonl"))

Golden = Callable[[Path, str], None]


@pytest.fixture(params=RECORDED, ids=lambda host: host.name)
def replay(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> tuple[Path, Callable[[str], str]]:
    host: Path = request.param
    config = host / "config.yml"
    options = ["--config.file", str(config)] if config.exists() else []

    def run(form: str) -> str:
        assert main(["replay", str(host / "ticks.jsonl"), form, *options]) == 0
        return capsys.readouterr().out

    return host, run


def test_metrics_after_the_last_tick(
    replay: tuple[Path, Callable[[str], str]], golden: Golden
) -> None:
    host, run = replay
    golden(host / "expected.prom", run("--metrics"))


def test_records_of_all_ticks(replay: tuple[Path, Callable[[str], str]], golden: Golden) -> None:
    host, run = replay
    golden(host / "expected.jsonl", run("--json"))
