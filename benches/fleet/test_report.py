"""`disksla report` on a real Prometheus, beside a replay and beside the recording rules."""

import contextlib
import io
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from disksla.commands.cli import main
from disksla.state.pipeline.snapshot import DiskSnapshot, Snapshot
from disksla.verdict.throttling import LIMIT_KINDS, VERDICTS
from fleet.backfill import backfill, backfill_rules, write_blocks
from fleet.long_recording import long_states
from fleet.page import labelled
from fleet.playback import page_of
from fleet.stack import MIXIN, NO_TARGETS, missing, prometheus
from support.monitoring_stack import Prometheus

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"NOT TESTED: {missing()}")

RECORDINGS = Path(__file__).parent.parent / "lab" / "recordings"
START_S = 1_790_812_800
"""2026-10-01 in UTC."""
DAY_S, HOUR_S = 86_400, 3600
SEED, HOSTS = 1, 2
_RULES_S = 300.0
"""The window of the rules, which need not begin with the period."""


def report(server: Prometheus, end: str) -> list[dict[str, Any]]:
    """Return the disks of a report from the start to a time."""
    command = ["report", "--prometheus", f"http://{server.address}", "--from", "2026-10-01"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main([*command, "--to", end, "--json"]) in {0, 1}
    disks: list[dict[str, Any]] = json.loads(printed.getvalue())["disks"]
    return disks


class Scrapes:
    """Scrapes of a recording at equal intervals, with the first and the last snapshot."""

    def __init__(self, recording: str, seconds: float, every_s: float) -> None:
        self._states = long_states(RECORDINGS / recording, seconds, START_S)
        self._every_s = every_s
        self.first: DiskSnapshot | None = None
        self.last: DiskSnapshot | None = None

    def lines(self) -> Iterator[str]:
        """Yield the samples of each scrape in OpenMetrics format."""
        due_s = 0.0
        for state in islice(self._states, 10, None):
            if state.clocks is None or state.clocks.realtime_s < due_s:
                continue
            now_s = state.clocks.realtime_s
            due_s = now_s + self._every_s
            snapshot = Snapshot(state)
            [self.last] = snapshot.disks
            self.first = self.first or self.last
            for line in page_of(snapshot).splitlines():
                if not line.startswith("#"):
                    series, _, value = line.rpartition(" ")
                    labels = 'job="disksla",instance="lab:10056"'
                    yield f"{labelled(series, labels)} {value} {now_s:.3f}\n"
        yield "# EOF\n"


def compare_with_replay(home: Path, recording: str, seconds: float, every_s: float) -> None:
    """Check that the report has the seconds of the replay of the same ticks."""
    scrapes = Scrapes(recording, seconds, every_s)
    text, data = home / "recording.om", home / "data"
    data.mkdir()
    with text.open("w") as file:
        file.writelines(scrapes.lines())
    write_blocks(text, data)
    text.unlink()
    with prometheus(NO_TARGETS, home) as server:
        [disk] = report(server, "2026-10-02T01:00:00Z")
    assert scrapes.first is not None
    assert scrapes.last is not None
    before, after = scrapes.first.verdict_totals, scrapes.last.verdict_totals
    totals = disk["totals"]
    for verdict, first_s, last_s in zip(VERDICTS, before.seconds, after.seconds, strict=True):
        assert totals["verdict_seconds"][verdict] == pytest.approx(last_s - first_s, abs=1e-3)
    throttled = zip(LIMIT_KINDS, before.throttled_s, after.throttled_s, strict=True)
    for limit, first_s, last_s in throttled:
        found_s = totals["throttled_seconds"].get(limit, 0.0)
        assert found_s == pytest.approx(last_s - first_s, abs=1e-3)
    assert totals["noncompliant_s"] == pytest.approx(
        sum(each["below_s"] + each["stalled_s"] for each in disk["incidents"]), abs=1e-3
    )
    assert totals["assessed_s"] == pytest.approx(seconds - 15, abs=2 * every_s)


@pytest.mark.parametrize("recording", ["below-deep", "leaky-bucket", "stall", "mariadb-4"])
def test_seconds_are_those_of_the_replay(tmp_path: Path, recording: str) -> None:
    compare_with_replay(tmp_path, recording, 300.0, 15.0)


@pytest.mark.parametrize("recording", ["below-deep"])
def test_a_day_has_the_seconds_of_its_replay(tmp_path: Path, recording: str) -> None:
    compare_with_replay(tmp_path, recording, float(DAY_S), 60.0)


def name_of(labels: dict[str, str]) -> tuple[str, str]:
    return labels["instance"], labels["device"]


def recorded_seconds(server: Prometheus, name: str, end_s: int) -> dict[tuple[str, str], float]:
    """Return the seconds of a recording rule in the twelve hours before a time, by disk."""
    rule = f"instance_device:disksla_{name}_seconds:increase5m"
    found = server.query(f"sum_over_time({rule}[12h] @ {end_s})")
    return {name_of(each["metric"]): float(each["value"][1]) for each in found}


def test_seconds_are_those_of_the_recording_rules(tmp_path: Path) -> None:
    """They differ by what the rules extrapolate, and by their window at both ends."""
    data = tmp_path / "data"
    data.mkdir()
    end_s = START_S + 12 * HOUR_S
    backfill(SEED, HOSTS, START_S - 2 * DAY_S, START_S - HOUR_S, end_s + HOUR_S, data)
    document = yaml.safe_load((MIXIN / "prometheus_rules.yaml").read_text(encoding="utf-8"))
    steps = [group for group in document["groups"] if group["name"] == "disksla.sla.steps"]
    rules = tmp_path / "steps.yaml"
    of_disks = [rule for rule in steps[0]["rules"] if rule["record"].startswith("instance_device")]
    rules.write_text(yaml.safe_dump({"groups": [{**steps[0], "rules": of_disks}]}))
    with prometheus(NO_TARGETS, tmp_path) as server:
        backfill_rules(server, rules, START_S - HOUR_S, end_s + HOUR_S, data)
    with prometheus(NO_TARGETS, tmp_path) as server:
        disks = report(server, "2026-10-01T12:00:00Z")
        recorded = {
            name: recorded_seconds(server, name, end_s) for name in ("proven", "noncompliant")
        }
    tested = [disk for disk in disks if disk["totals"]["proven_s"] > HOUR_S / 6]
    assert len(tested) > 5
    for disk in tested:
        proven_s = disk["totals"]["proven_s"]
        recorded_s = recorded["proven"][name_of(disk["labels"])]
        assert recorded_s == pytest.approx(proven_s, rel=0.02, abs=_RULES_S)
    [below] = [disk for disk in tested if disk["totals"]["noncompliant_s"]]
    # This disk is below its promise for hours that begin and end inside the period.
    noncompliant_s = below["totals"]["noncompliant_s"]
    assert noncompliant_s > 5 * HOUR_S
    recorded_s = recorded["noncompliant"][name_of(below["labels"])]
    assert recorded_s == pytest.approx(noncompliant_s, abs=1)
