"""`disksla advise` on a real Prometheus, beside the windows from which its series are."""

import contextlib
import io
import json
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from disksla.commands.cli import main
from disksla.measure.advice import Needs, demand_of, served_of, together
from disksla.measure.advice.search import Candidate, outcome_of
from disksla.measure.advice.simulation import ShareRange
from disksla.promise.catalogue import Provision, derive_limits
from disksla.promise.catalogue.catalog import load_catalog
from disksla.state.pipeline import State, WindowRecord, window_records
from disksla.state.pipeline.snapshot import Snapshot
from fleet.backfill import write_blocks
from fleet.long_recording import long_states
from fleet.page import labelled
from fleet.playback import page_of
from fleet.stack import NO_TARGETS, missing, prometheus

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"NOT TESTED: {missing()}")

RECORDINGS = Path(__file__).parent.parent / "lab" / "recordings"
START_S = 1_790_812_800
"""2026-10-01 in UTC."""
SECONDS, EVERY_S = 300.0, 15.0
SLACK = 0.1
"""A window that was throttled in part counts as a whole in a recording, and in part in series."""
PERIOD = ("--from", "2026-10-01", "--to", "2026-10-02")


def lines(states: list[State]) -> Iterator[str]:
    """Yield the samples of scrapes at equal intervals, in OpenMetrics format."""
    due_s = 0.0
    for state in states:
        if state.clocks is None or state.clocks.realtime_s < due_s:
            continue
        now_s = state.clocks.realtime_s
        due_s = now_s + EVERY_S
        for line in page_of(Snapshot(state)).splitlines():
            if not line.startswith("#"):
                series, _, value = line.rpartition(" ")
                labels = 'job="disksla",instance="lab:10056"'
                yield f"{labelled(series, labels)} {value} {now_s:.3f}\n"
    yield "# EOF\n"


def by_windows(states: list[State]) -> Needs:
    """Return the needs of the same time, by the windows of all disks together."""
    records: list[WindowRecord] = []
    for pair in pairwise(states):
        records += window_records(*pair)
    served = together(
        served_of([record for record in records if record.device == name])
        for name in states[-1].monitored
    )
    return Needs(demand_of(served), 0.001, states[-1].settings.assessment.tolerance_ratio)


def advised(states: list[State], directory: Path, *arguments: str) -> dict[str, Any]:
    """Return what is advised by the series of states on a real Prometheus."""
    data, text = directory / "data", directory / "recording.om"
    data.mkdir()
    with text.open("w") as file:
        file.writelines(lines(states))
    write_blocks(text, data)
    command = ["advise", "lab:*loop0", *PERIOD, *arguments, "--json"]
    with (
        prometheus(NO_TARGETS, directory) as server,
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        assert main([*command, "--prometheus", f"http://{server.address}"]) in {0, 1}
    found: dict[str, Any] = json.loads(printed.getvalue())
    return found


def assert_contains(share: dict[str, float], seen: ShareRange) -> None:
    assert share["least"] <= seen.least + SLACK
    assert seen.most <= share["most"] + SLACK


@pytest.mark.parametrize("recording", ["steady-90", "postgresql-8-fsync", "leaky-bucket"])
def test_ranges_contain_those_of_the_windows(tmp_path: Path, recording: str) -> None:
    states = list(islice(long_states(RECORDINGS / recording, SECONDS, START_S), 10, None))
    found = advised(states, tmp_path, "--terms", "vk.ceph-hdd", "--size", "100GiB")
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
    recording = RECORDINGS / "machine-two-busy"
    states = list(islice(long_states(recording, SECONDS, START_S, config), 10, None))
    found = advised(states, tmp_path)
    assert found["present"]["terms"] == "aws.gp3"
    [group] = found["machine"]
    assert group["devices"] == ["lab:10056 loop0", "lab:10056 loop1"]
    needs = by_windows(states)
    assert group["machines"][0]["machine"] == "t3.nano"
    [shared] = states[-1].groups.values()
    assert_contains(group["machines"][0]["throttled_share"], needs.share(shared.shared.limits))
