"""`disksla report` and `advise` on a real Prometheus, beside the ticks of its series."""

import contextlib
import io
import json
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from disksla.commands.cli import main
from disksla.measure.advice import Needs, demand_of, served_of, total_served
from disksla.measure.advice.search import Candidate, outcome_of
from disksla.measure.advice.simulation import ShareRange
from disksla.promise.catalogue import Provision, derive_limits
from disksla.promise.catalogue.catalog import load_catalog
from disksla.serve.metrics.collector import SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.state.pipeline import State, window_records
from disksla.state.pipeline.snapshot import Snapshot
from disksla.verdict.throttling import LIMIT_KINDS, VERDICTS
from fleet.backfill import write_blocks
from fleet.hosts import labelled
from fleet.long_recording import long_states
from fleet.stack import NO_TARGETS, missing, prometheus
from support.snapshots import ABOUT

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"NOT TESTED: {missing()}")

RECORDINGS = Path(__file__).parent.parent / "lab" / "recordings"
START_S = 1_790_812_800
"""2026-10-01 in UTC."""
SECONDS, EVERY_S = 300.0, 15.0
SLACK = 0.1
"""A window that was throttled in part counts as a whole in a recording, and in part in series."""
PERIOD = ("--from", "2026-10-01", "--to", "2026-10-02")
LABELS = 'job="disksla",instance="lab:10056"'


def states_of(recording: str, config: Path | None = None) -> list[State]:
    states = long_states(RECORDINGS / recording, SECONDS, START_S, config)
    return list(islice(states, 10, None))


def scraped(states: list[State]) -> list[tuple[float, State]]:
    """Return the states at equal intervals, each with its Unix time."""
    found: list[tuple[float, State]] = []
    for state in states:
        now_s = 0.0 if state.clocks is None else state.clocks.realtime_s
        if not found or now_s >= found[-1][0] + EVERY_S:
            found.append((now_s, state))
    return found


def lines(states: list[State]) -> Iterator[str]:
    """Yield the samples of the scrapes, in OpenMetrics format."""
    for now_s, state in scraped(states):
        snapshot = Snapshot(state)
        registry = make_registry(
            SnapshotCollector(lambda snapshot=snapshot: snapshot, lambda: ABOUT)  # type: ignore[misc]
        )
        for line in render_metrics(registry).body.decode().splitlines():
            if not line.startswith("#"):
                series, _, value = line.rpartition(" ")
                yield f"{labelled(series, LABELS)} {value} {now_s:.3f}\n"
    yield "# EOF\n"


def asked(states: list[State], directory: Path, *command: str) -> dict[str, Any]:
    """Return what a command prints of the series of states on a real Prometheus."""
    data, text = directory / "data", directory / "recording.om"
    data.mkdir()
    with text.open("w") as file:
        file.writelines(lines(states))
    write_blocks(text, data)
    with (
        prometheus(NO_TARGETS, directory) as server,
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        address = f"http://{server.address}"
        assert main([*command, *PERIOD, "--prometheus", address, "--json"]) in {0, 1}
    found: dict[str, Any] = json.loads(printed.getvalue())
    return found


@pytest.mark.parametrize("recording", ["below-deep", "leaky-bucket", "stall", "mariadb-4"])
def test_seconds_of_a_report_are_those_of_the_replay(tmp_path: Path, recording: str) -> None:
    states = states_of(recording)
    [disk] = asked(states, tmp_path, "report")["disks"]
    (_, first), *_, (_, last) = scraped(states)
    [[before], [after]] = [Snapshot(state).disks for state in (first, last)]
    totals = disk["totals"]
    for names, field, said in (
        (VERDICTS, "seconds", totals["verdict_seconds"]),
        (LIMIT_KINDS, "throttled_s", totals["throttled_seconds"]),
    ):
        earlier, later = (getattr(each.verdict_totals, field) for each in (before, after))
        for name, first_s, last_s in zip(names, earlier, later, strict=True):
            assert said.get(name, 0.0) == pytest.approx(last_s - first_s, abs=1e-3), name
    assert totals["noncompliant_s"] == pytest.approx(
        sum(each["below_s"] + each["stalled_s"] for each in disk["incidents"]), abs=1e-3
    )
    assert totals["assessed_s"] == pytest.approx(SECONDS - 15, abs=2 * EVERY_S)


def by_windows(states: list[State]) -> Needs:
    """Return the needs of the same time, by the windows of all disks together."""
    records = [record for pair in pairwise(states) for record in window_records(*pair)]
    served = total_served(
        served_of([record for record in records if record.device == name])
        for name in states[-1].monitored
    )
    return Needs(demand_of(served), 0.001, states[-1].settings.assessment.tolerance_ratio)


def assert_contains(share: dict[str, float], seen: ShareRange) -> None:
    assert share["least"] <= seen.least + SLACK
    assert seen.most <= share["most"] + SLACK


@pytest.mark.parametrize("recording", ["steady-90", "postgresql-8-fsync", "leaky-bucket"])
def test_ranges_of_advice_contain_those_of_the_windows(tmp_path: Path, recording: str) -> None:
    states = states_of(recording)
    wanted = ("--terms", "vk.ceph-hdd", "--size", "100GiB")
    found = asked(states, tmp_path, "advise", "lab:*loop0", *wanted)
    assert found["devices"] == ["lab:10056 loop0"]
    needs = by_windows(states)
    assert found["seconds"] == pytest.approx(needs.demand.seconds, abs=2 * EVERY_S)
    assert found["throttled_share"] == pytest.approx(needs.demand.throttled_share, abs=SLACK)
    catalog = load_catalog()
    for disk in (found["present"], *found["disks"]):
        size_bytes = disk["size_bytes"]
        limits = derive_limits(catalog[disk["terms"]], size_bytes)
        seen = outcome_of(Candidate(disk["terms"], size_bytes, Provision(), limits), needs)
        assert_contains(disk["throttled_share"], seen.share)


def test_machine_and_terms_of_the_series(tmp_path: Path) -> None:
    """Two volumes of AWS, of which the daemon knows types and machine."""
    volumes = [
        {"match": {"device": device}, "terms": "aws.gp3", "size": "100GiB"}
        for device in ("loop0", "loop1")
    ]
    config = tmp_path / "config.yml"
    config.write_text(json.dumps({"machine": {"type": "t3.nano"}, "disks": volumes}))
    states = states_of("machine-two-busy", config)
    found = asked(states, tmp_path, "advise", "lab:*loop0")
    assert found["present"]["terms"] == "aws.gp3"
    [group] = found["machine"]
    assert group["devices"] == ["lab:10056 loop0", "lab:10056 loop1"]
    needs = by_windows(states)
    assert group["machines"][0]["machine"] == "t3.nano"
    [shared] = states[-1].groups.values()
    assert_contains(group["machines"][0]["throttled_share"], needs.share(shared.shared.limits))
