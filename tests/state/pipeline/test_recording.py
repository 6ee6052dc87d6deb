"""File format of recordings."""

import contextlib
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.histogram import LatencyBin
from disksla.base.operating_system import SourceHealth
from disksla.kernel.procfs.diskstats import CloseSample
from disksla.state.pipeline import Snapshot
from disksla.state.pipeline.probe_results import ProbeResult
from disksla.state.pipeline.tick import (
    FORMAT,
    RecordingHeader,
    Tick,
    decode_header,
    decode_tick,
    encode,
)
from disksla.state.pipeline.window_records import WindowRecord, window_records
from disksla.verdict.interval.interval import Clocks
from support.simulated_host import Machine, a_disk

HOSTS = Path(__file__).parents[2] / "hosts"
HEADER = RecordingHeader(FORMAT, interval_s=0.1, kernel="6.1.0", disksla="0.1.0")

PROBED = ProbeResult(
    device="vda", kind="read-latency", timestamp_s=1.7e9, requests=2, bins=(LatencyBin(0.001, 2),)
)
CLOCKS = Clocks(1000.0, 1000.0, 1.7e9)
times = st.floats(allow_nan=False, allow_infinity=False)
clock_times = st.floats(-(2.0**40), 2.0**40)
counts = st.integers(0, 2**63 - 1)
close_samples = st.builds(
    CloseSample, times, counts, counts, counts, counts, counts, counts, counts
)
ticks = st.builds(
    Tick,
    clocks=st.builds(Clocks, clock_times, clock_times, clock_times),
    diskstats=st.none() | st.text(),
    lateness_s=st.floats(0, 10),
    missed_ticks=st.integers(0, 10),
    inflight=st.dictionaries(st.text(), st.tuples(st.integers(0), st.integers(0)), max_size=3),
    data_writes=st.dictionaries(st.text(), st.tuples(counts, counts), max_size=3),
    close=st.dictionaries(st.text(), st.lists(close_samples, max_size=3).map(tuple), max_size=3),
    disks=st.none() | st.just((a_disk(), a_disk("vdb", minor=16, serial="one", write_back=True))),
    problems=st.dictionaries(st.text(), st.text(), max_size=3),
    probes=st.just(()) | st.just((PROBED,)),
)


@given(ticks)
def test_tick_round_trip(tick: Tick) -> None:
    line = encode(tick)
    assert line.count(b"\n") == 1
    assert decode_tick(line, 2) == tick


def test_recordings_without_exact_counts_and_close_samples_stay_as_they_are() -> None:
    lines = (HOSTS / "vm-virtio-6.18" / "ticks.jsonl").read_bytes().splitlines()[1:]
    recorded = [decode_tick(line, 2) for line in lines]
    assert not any(tick.data_writes or tick.close for tick in recorded)
    assert [encode(tick) for tick in recorded] == [line + b"\n" for line in lines]


def test_close_samples_are_arrays() -> None:
    samples = (CloseSample(1000.01, 5, 6, 40, 48, 1), CloseSample(1000.02, 5, 7, 40, 56, 1, 2, 3))
    close: dict[str, tuple[CloseSample, ...]] = {"vda": samples}
    line = encode(Tick(CLOCKS, "", close=close))
    assert b'"close":{"vda":[[1000.01,5,6,40,48,1,0,0],[1000.02,5,7,40,56,1,2,3]]}' in line
    assert decode_tick(line, 2).close == close
    without_flushes = line.replace(b",1,0,0]", b",1]")
    assert decode_tick(without_flushes, 2).close == close
    with pytest.raises(DiskslaError, match="line 2: invalid tick"):
        decode_tick(line.replace(b",6,", b",-6,"), 2)


def test_recorded_probe_message_is_decoded() -> None:
    lines = (HOSTS / "probed" / "ticks.jsonl").read_bytes().splitlines()[1:]
    results = [result for line in lines for result in decode_tick(line, 2).probes]
    messages = [result.message for result in results if result.message]
    assert messages == [
        "91% of the promise is in use, over 80%",
        "fio was ended after 15 s, its time limit",
    ]
    assert all(encode(decode_tick(line, 2)) == line + b"\n" for line in lines)


def test_header_round_trip() -> None:
    assert decode_header(encode(HEADER)) == HEADER


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "line 1: invalid header of a recording"),
        (b"{}\n", "line 1: invalid header of a recording"),
        (b'{"x":' + b"[" * 10_000, "line 1: invalid header of a recording"),
        (encode(HEADER).replace(b"6.1.0", b"\xff"), "line 1: invalid header of a recording"),
        (
            encode(RecordingHeader(99, 0.1, "6.1.0", "9.0.0")),
            "line 1: found format 99; expected 1",
        ),
        (encode(RecordingHeader(FORMAT, 0.0, "6.1.0", "0.1.0")), "found interval_s 0.0; expected"),
        (
            encode(RecordingHeader(FORMAT, -1.0, "6.1.0", "0.1.0")),
            "found interval_s -1.0; expected",
        ),
    ],
)
def test_decode_header_rejects_other_files(line: bytes, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        decode_header(line)


@given(st.binary(max_size=200))
def test_decode_tick_rejects_line_with_its_number(line: bytes) -> None:
    with contextlib.suppress(msgspec.MsgspecError):
        msgspec.json.decode(line, type=Tick)
        return
    with pytest.raises(DiskslaError, match=r"^line 17: "):
        decode_tick(line, 17)


@pytest.mark.parametrize("seconds", [b"1e300", b"-1e300", b"2e12"])
def test_decode_tick_rejects_clocks_beyond_any_calendar(seconds: bytes) -> None:
    line = re.sub(rb'"monotonic_s":[^,]+', b'"monotonic_s":' + seconds, encode(Tick(CLOCKS, "")))
    with pytest.raises(DiskslaError, match="line 17: invalid tick: Expected `float`"):
        decode_tick(line, 17)


def test_decode_tick_rejects_invalid_utf8() -> None:
    with pytest.raises(DiskslaError, match="line 17: invalid tick: "):
        decode_tick(encode(Tick(CLOCKS, "254 0 vda")).replace(b"vda", b"\xff\xfe"), 17)


def records(
    machine: Machine, after_s: float = 0.1, text: str | None = "as it is"
) -> list[WindowRecord]:
    before = machine.state
    return window_records(before, machine.tick(after_s, text=text))


def test_window_idle_window_and_gap() -> None:
    machine = Machine(a_disk())
    machine.tick()
    machine.does("vda", reads=3, read_sectors=24)
    found = [row for _ in range(10) for row in records(machine)]
    (busy,) = [row for row in found if row.reads]
    assert (busy.reads, busy.read_bytes, busy.gap) == (3, 12288, None)
    assert busy.window_s == pytest.approx(0.1)
    assert [row.monotonic_s for row in found] == sorted({row.monotonic_s for row in found})
    (idle,) = records(machine)
    assert (idle.reads, idle.inflight, idle.gap) == (0, 0, None)
    machine.does("vda", reads=30)
    *_, late = records(machine, after_s=5.0)
    assert (late.reads, late.gap) == (None, "late")


def test_first_sample_has_gap_start() -> None:
    machine = Machine()
    disk = a_disk()
    machine.disks = (disk,)
    machine.numbers["vda"] = dict.fromkeys(Machine(disk).numbers["vda"], 0)
    before = machine.state
    (record,) = window_records(before, machine.tick(disks=(disk,)))
    assert record.gap == "start"


def test_no_records_before_first_sample() -> None:
    machine = Machine(a_disk(), unreadable=True)
    assert records(machine, text=None) == []


def test_each_window_has_one_record_if_a_disk_vanishes_while_verdicts_wait() -> None:
    machine = Machine(a_disk())
    machine.tick()
    machine.does("vda", inflight=8)
    windows: list[WindowRecord] = []
    for tick in range(25):
        if tick % 10 == 9:
            machine.does("vda", reads=100, read_ms=8000)
        windows += records(machine)
    assert 0 < len(windows) < 25
    windows += records(machine, text="")
    recorded_s = [window.monotonic_s for window in windows if window.gap is None]
    assert len(recorded_s) == len(set(recorded_s)) == 25


def test_health_of_parts_of_the_daemon_is_added() -> None:
    state = Machine().state
    before = Snapshot(state).sampler
    health = (
        SourceHealth("state", 3, works=False, problem="No space left on device"),
        SourceHealth("systemd", 2, works=None),
        SourceHealth("web", 0, works=True),
    )
    after = Snapshot(state, health, {("file", "invalid"): 2})
    assert after.terms.failures == {("file", "invalid"): 2}
    assert after.sampler.errors == {**before.errors, "state": 3, "systemd": 2, "web": 0}
    assert after.sampler.collectors == {**before.collectors, "state": False, "web": True}
    assert after.sampler.problems == {"state": "No space left on device"}
    assert Snapshot(state).sampler == before
