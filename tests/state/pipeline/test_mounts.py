"""NFS mounts through `advance`: windows, verdicts, gaps, and what must not be said of them."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from disksla.base.units import GIB, KIB, MIB, TIB
from disksla.commands.replay import replay
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.snapshot import DiskSnapshot, Snapshot
from disksla.state.pipeline.tick import Tick
from disksla.state.pipeline.window_records import window_records
from disksla.tell.api.disks_document import credits_document
from disksla.tell.explanation.machine_limit import machine_limit
from disksla.tell.explanation.sentences import explain
from disksla.tell.explanation.summary import summary_of_slots
from disksla.verdict.throttling.verdict import VERDICTS
from support.nfs_client import Connections, Export, NfsClient

NAME = "fs1.example:/export"
Load = Callable[[Export, int], None]  # what an export does in the tick of this number


def with_terms(terms: str | SumTerms, size_bytes: int | None = None, **options: str) -> Settings:
    entry = DiskEntry(match=DiskMatch(device=NAME), terms=terms, size=size_bytes, options=options)
    return Settings(disks=(entry,))


def disk(client: NfsClient, name: str = NAME) -> DiskSnapshot:
    return next(each for each in Snapshot(client.machine.state).disks if each.disk.name == name)


def run(client: NfsClient, load: Load, seconds: float, read_every: int = 1) -> None:
    for number in range(round(seconds * 10)):
        for export in client.exports:
            load(export, number)
        client.tick(read=number % read_every == read_every - 1)


def verdict_s(client: NfsClient, name: str = NAME) -> dict[str, float]:
    """Return the seconds of a mount by verdict, without those that are 0."""
    seconds = disk(client, name).verdict_totals.seconds
    return {each: round(s, 1) for each, s in zip(VERDICTS, seconds, strict=True) if s}


def paced(operation: str, per_second: float, request_bytes: int, depth: int = 8) -> Load:
    """Return a load of so many operations per second, with so many in flight."""

    def load(export: Export, number: int) -> None:
        done = round((number + 1) * per_second / 10) - round(number * per_second / 10)
        if done:
            export.does(operation, done, request_bytes, took_ms=1000 * depth / per_second)

    return load


def test_a_mount_is_a_disk_with_counters_rates_and_latency() -> None:
    client = NfsClient(Export())
    run(client, paced("READ", 100, 64 * KIB, depth=2), 3)
    found = disk(client)
    assert found.counters is not None
    assert found.counters.reads == 300
    assert found.counters.read_sectors == 300 * 128
    assert found.present.read_iops == pytest.approx(100, rel=0.01)
    assert found.totals.read_latency.histogram.total == pytest.approx(300 * 0.02, rel=0.02)
    assert found.inflight == 2
    assert set(verdict_s(client)) == {"unproven"}


def test_what_does_not_exist_for_a_mount_is_absent() -> None:
    client = NfsClient(Export())
    run(client, paced("WRITE", 100, 4 * KIB), 2)
    found = disk(client)
    assert found.counters is not None
    absent = ("reads_merged", "writes_merged", "busy_ms", "flushes", "flush_ms", "discards")
    assert [getattr(found.counters, name) for name in absent] == [None] * len(absent)
    assert found.verdict_totals.host.iowait_s is None
    assert found.data_writes is None


def test_other_operations_are_counted_apart() -> None:
    client = NfsClient(Export())
    run(client, lambda export, _: export.does("GETATTR", 50), 1)
    run(client, lambda export, _: export.does("COMMIT", 2), 1)
    found = disk(client)
    assert found.mount is not None
    assert (found.mount.others, found.mount.commits) == (500, 20)
    assert verdict_s(client) == {"idle": 2.0}


@pytest.mark.parametrize("has_sessions", [False, True])
def test_a_server_that_does_not_answer_is_stalled_and_recovers(has_sessions: bool) -> None:
    client = NfsClient(Export(has_sessions=has_sessions))
    export = client.exports[0]
    run(client, paced("WRITE", 100, 4 * KIB), 2)
    run(client, lambda *_: None, 1)
    export.connections.sends += 8
    run(client, lambda *_: None, 5)
    assert disk(client).inflight == 8
    assert verdict_s(client)["stalled"] == pytest.approx(5, abs=0.2)
    assert "the server of the file storage, or the network to it, did not answer" in said(client)
    export.connections.sends -= 8
    export.does("WRITE", 8, 4 * KIB, took_ms=5000)
    run(client, lambda *_: None, 5)
    assert verdict_s(client)["stalled"] == pytest.approx(5, abs=0.2)
    assert disk(client).inflight == 0
    assert disk(client).verdict == "idle"


def called_back(load: Load, *, at_each: int) -> Load:
    """Return a load of a mount whose server takes delegations back: each answer is on the wire."""

    def both(export: Export, number: int) -> None:
        load(export, number)
        if number % at_each == 0:
            export.connections.sends += 1
            export.does("DELEGRETURN", 1)

    return both


def test_answers_under_a_load_do_not_stall_a_mount_after_it() -> None:
    client = NfsClient(Export(has_sessions=True))
    run(client, called_back(paced("READ", 100, 4 * KIB), at_each=5), 6)
    run(client, lambda *_: None, 10)
    assert verdict_s(client) == {"unproven": 6.0, "idle": 10.0}
    assert disk(client).inflight == 0


@pytest.mark.parametrize("read_every", [1, 9, 10, 11, 13, 20])
def test_a_server_is_stalled_however_often_it_is_read(read_every: int) -> None:
    client = NfsClient(Export(has_sessions=True))
    client.exports[0].connections.sends += 8
    run(client, paced("READ", 50, 4 * KIB), 12, read_every)
    run(client, lambda *_: None, 8, read_every)
    assert verdict_s(client)["stalled"] == pytest.approx(8, abs=read_every / 5)
    assert disk(client).inflight == 8


def test_what_a_mount_does_now_is_of_the_last_reading() -> None:
    client = NfsClient(Export(), settings=with_terms(SumTerms(iops=100)))
    run(client, paced("READ", 50, 4 * KIB), 13, read_every=13)
    for _ in range(12):
        client.tick(read=False)
        assert disk(client).present.read_iops == pytest.approx(50, rel=0.05)
        assert disk(client).present_load == pytest.approx(0.5, rel=0.05)
    client.tick(read=True)
    assert disk(client).present_load == 0


def test_a_mount_that_is_idle_is_not_stalled_because_of_another_one() -> None:
    shared = Connections()
    busy = Export(connections=shared)
    client = NfsClient(busy, Export("fs1.example:/other", "/other", 51, shared))
    run(
        client,
        lambda export, n: paced("READ", 100, 4 * KIB)(busy, n) if export is busy else None,
        2,
    )
    run(client, lambda *_: None, 1)
    shared.sends += 4
    run(client, lambda *_: None, 4)
    assert verdict_s(client, "fs1.example:/other") == {"idle": 7.0}


def test_a_mount_whose_metadata_is_answered_is_not_stalled() -> None:
    client = NfsClient(Export())
    run(client, paced("READ", 100, 4 * KIB), 2)
    client.exports[0].connections.sends += 1
    run(client, lambda export, _: export.does("GETATTR", 3), 5)
    assert "stalled" not in verdict_s(client)


def test_requests_that_are_lost_with_their_connection_do_not_stall_a_mount_for_ever() -> None:
    client = NfsClient(Export())
    connections = client.exports[0].connections
    run(client, lambda *_: None, 1)
    connections.sends += 8
    run(client, lambda *_: None, 4)
    connections.connects += 1
    connections.sends += 8  # they are sent again
    client.tick()
    client.exports[0].does("READ", 8, 4 * KIB, took_ms=3000)
    connections.sends -= 8
    run(client, lambda *_: None, 1)
    stalled_s = verdict_s(client)["stalled"]
    run(client, lambda *_: None, 10)
    assert verdict_s(client)["stalled"] == stalled_s
    assert disk(client).verdict == "idle"


def test_answers_to_calls_of_the_server_do_not_stall_a_mount() -> None:
    """With sessions they are sent over the same connections, and have no reply."""
    client = NfsClient(Export(has_sessions=True))
    connections = client.exports[0].connections
    for _ in range(5):
        run(client, paced("READ", 100, 4 * KIB), 1)
        connections.sends += 1
        run(client, lambda *_: None, 4)
        client.exports[0].does("GETATTR", 1)
    assert "stalled" not in verdict_s(client)
    run(client, lambda *_: None, 2)
    connections.sends += 2
    run(client, lambda *_: None, 4)
    assert verdict_s(client)["stalled"] == pytest.approx(4, abs=0.2)


def test_what_was_on_the_wire_at_the_start_is_not_known_to_be_in_flight() -> None:
    client = NfsClient(Export(connections=Connections(connects=60, sends=28063, replies=28034)))
    run(client, lambda *_: None, 5)
    assert verdict_s(client) == {"idle": 5.0}


def test_connections_of_a_mount_are_summed() -> None:
    client = NfsClient(Export(connections=Connections(number=4)))
    run(client, lambda *_: None, 0.5)
    client.exports[0].connections.sends += 6
    run(client, lambda *_: None, 2)
    assert disk(client).inflight == 6


def test_counters_go_on_after_a_remount() -> None:
    client = NfsClient(Export())
    run(client, paced("READ", 100, 4 * KIB), 1)
    client.exports[0].remounted(77)
    run(client, paced("READ", 100, 4 * KIB), 1)
    client.tick(disks=True)
    run(client, paced("READ", 100, 4 * KIB), 1)
    found = disk(client)
    assert found.counters is not None
    assert found.counters.reads == 290
    assert client.machine.state.sampler_stats.gaps["reset"] == 1


def test_a_mount_that_is_gone_comes_back() -> None:
    client = NfsClient(Export())
    run(client, paced("READ", 100, 4 * KIB), 1)
    gone = client.exports.pop()
    client.tick()
    assert disk(client).inflight is None
    assert client.machine.state.sampler_stats.gaps["vanished"] == 1
    client.tick(disks=True)
    assert Snapshot(client.machine.state).disks == ()
    client.exports.append(gone)
    client.tick(disks=True)
    run(client, paced("READ", 100, 4 * KIB), 1)
    run(client, lambda *_: None, 0.5)
    assert verdict_s(client)["unproven"] == pytest.approx(1.0, abs=0.11)


def test_bind_mounts_and_second_mounts_are_one_disk() -> None:
    client = NfsClient(Export(also_at=("/bind", "/again")))
    run(client, paced("READ", 100, 4 * KIB), 1)
    (only,) = Snapshot(client.machine.state).disks
    assert only.counters is not None
    assert only.counters.reads == 100
    assert only.disk.mount_points == ("/again", "/bind", "/data")


def test_thirty_mounts_are_read_once_a_second_and_sums_are_the_same() -> None:
    exports = [
        Export(f"fs1.example:/export{n}" if n else NAME, f"/data{n}", 50 + n) for n in range(30)
    ]
    terms = SumTerms(iops=300.0)
    client = NfsClient(*exports, settings=with_terms(terms))
    run(client, paced("WRITE", 300, 4 * KIB), 12, read_every=10)
    found = disk(client)
    assert found.counters is not None
    assert found.counters.writes == 3600
    assert found.present.write_iops == pytest.approx(300, rel=0.02)
    assert found.peak.write_iops == pytest.approx(300, rel=0.02)
    assert verdict_s(client)["throttled"] >= 5
    other = verdict_s(client, "fs1.example:/export1")
    assert set(other) == {"unproven"}


def test_idle_seconds_never_fall_between_two_readings() -> None:
    client = NfsClient(Export())
    idle_s = 0.0
    for number in range(60):
        if number % 7 == 0:
            client.exports[0].does("READ", 1, 4 * KIB)
        client.tick(read=number % 10 == 9)
        now_s = disk(client).verdict_totals.seconds[0]
        assert now_s >= idle_s
        idle_s = now_s


def test_a_gap_between_two_readings_is_no_window() -> None:
    client = NfsClient(Export())
    run(client, paced("READ", 100, 4 * KIB), 1)
    client.tick(5.0, read=False)
    client.exports[0].does("READ", 1000, 4 * KIB)
    client.tick()
    assert disk(client).peak.read_iops == pytest.approx(100, rel=0.01)


def test_counters_that_could_not_be_read_for_long_are_no_window() -> None:
    client = NfsClient(Export())
    run(client, paced("READ", 100, 4 * KIB), 1)
    run(client, paced("READ", 1000, 4 * KIB), 5, read_every=1000)
    client.tick()
    assert disk(client).peak.read_iops == pytest.approx(100, rel=0.01)
    found = disk(client).counters
    assert found is not None
    assert found.reads == 5100


def test_a_malformed_mount_is_a_gap_and_a_counted_error() -> None:
    client = NfsClient(Export())
    run(client, paced("READ", 100, 4 * KIB), 1)
    client.exports[0].counts["READ"] = ["x"] * 4  # type: ignore[list-item]
    client.tick()
    stats = client.machine.state.sampler_stats
    assert (stats.errors["mountstats"], stats.gaps["malformed"]) == (1, 1)
    client.exports[0].counts["READ"] = [100, 0, 0, 0]
    client.tick()
    assert client.machine.state.sampler_stats.problems == {}


def test_what_no_file_storage_can_do_is_a_gap() -> None:
    client = NfsClient(Export())
    run(client, paced("READ", 100, 4 * KIB), 1)
    client.exports[0].does("READ", 10**12, 4 * KIB)
    client.tick()
    run(client, paced("READ", 100, 4 * KIB), 2)
    assert client.machine.state.sampler_stats.gaps["malformed"] == 1
    assert disk(client).peak.read_iops == pytest.approx(100, rel=0.01)


def test_ticks_with_mounts_are_recorded_and_their_windows_too() -> None:
    client = NfsClient(Export())
    states = [client.machine.state]
    for _ in range(25):
        client.exports[0].does("READ", 10, 4 * KIB)
        client.tick()
        states.append(client.machine.state)
    records = [each for pair in pairwise(states) for each in window_records(*pair)]
    assert {(each.device, each.gap, each.reads) for each in records} == {(NAME, None, 10)}
    assert len(records) >= 15
    reading = disk(client).mount
    assert reading is not None
    tick = Tick(client.machine.clocks(), "", mounts={NAME: reading})
    assert msgspec.json.decode(msgspec.json.encode(tick), type=Tick) == tick


def test_a_recording_is_replayed() -> None:
    """EFS at its baseline by a simulated client, which is not answered from 6 to 11 s."""
    *_, state = replay(Path(__file__).parent / "recordings" / "nfs-stalled.rec.gz", None)
    seconds = dict(zip(VERDICTS, state.monitored[NAME].totals.verdict_totals.seconds, strict=True))
    assert seconds["stalled"] == pytest.approx(5, abs=0.5)
    assert seconds["below"] == 0
    (other,) = state.mounts - {NAME}
    seconds = dict(
        zip(VERDICTS, state.monitored[other].totals.verdict_totals.seconds, strict=True)
    )
    assert {verdict for verdict, each_s in seconds.items() if each_s} == {"idle", "unproven"}


def said(client: NfsClient) -> str:
    """Return what is said of the last seconds."""
    assignment = client.machine.state.monitored[NAME].assignment
    slots = client.history.disks[NAME].seconds()[-8:]
    summary = summary_of_slots(slots, charges=assignment.limits.promise_charges)
    return " ".join(explain(summary, assignment, machine_limit(client.machine.state, NAME)))


class Case(NamedTuple):
    """A load on a mount with terms, and what is found of it."""

    settings: Settings
    loads: tuple[Load, ...]
    seconds: float = 12.0
    throttled: str | None = None  # the limit; None if the mount must be accused of nothing
    load: float | None = None


def efs(size_bytes: int, mode: str = "bursting") -> Settings:
    return with_terms("aws.efs", size_bytes, mode=mode)


_READS = paced("READ", 50, 4 * KIB)
CASES = {
    # terraform-aws-runs-on#37: twelve jobs, 2.83 MiB/s together
    "EFS without credits": Case(
        efs(58 * GIB),
        (paced("WRITE", 58 / 1024 * 50 * MIB / (64 * KIB), 64 * KIB, depth=12),),
        15,
        throttled="bandwidth",
    ),
    # aws-cf-templates#324: "high CPU wait times", and the balance was 0
    "page reads": Case(
        efs(10 * GIB), (paced("READ", 24, 128 * KIB, depth=12),), 15, throttled="bandwidth"
    ),
    # aws-cf-templates#116: data that would raise the limit is written at the limit
    "another mode is advised": Case(
        efs(10 * GIB), (paced("WRITE", 16, 64 * KIB, depth=12),), 15, throttled="bandwidth"
    ),
    "no other mode is advised": Case(
        efs(TIB, "elastic"), (paced("READ", 250000, 4 * KIB, depth=99),), 15, throttled="iops"
    ),
    # cool-assessment-terraform#230: a limit of its own, far below the bandwidth
    "EFS at its IOPS": Case(
        efs(6 * TIB), (paced("READ", 35000, 4 * KIB, depth=64),), throttled="iops"
    ),
    # diux-dev/cluster#35: rsync reaches what one client may get, today 500 MiB/s
    "limit of one client": Case(
        efs(7 * TIB), (paced("WRITE", 500, MIB, depth=16),), 15, throttled="machine_bandwidth"
    ),
    "limit of all, reached alone": Case(
        efs(TIB), (paced("WRITE", 50 * 16, 64 * KIB),), 15, throttled="bandwidth"
    ),
    "limit of all, not reached": Case(efs(TIB), (paced("WRITE", 19, MIB),)),
    "small reads of EFS count as 4 KiB each": Case(
        efs(TIB), (paced("READ", 1280, 512),), load=max(1280 * 4 * KIB / (50 * MIB), 1280 / 35000)
    ),
    # Azure/AKS#2021: 600 GiB, a flat 1 MiB/s, which is one thread and its latency
    "one thread": Case(
        with_terms("azure.files-ssd-v1", 600 * GIB), (paced("WRITE", 16, 64 * KIB, depth=1),), 30
    ),
    # IONOS: 470 write IOPS for a client, because each takes 20 ms
    "deep and slow writes": Case(
        with_terms(SumTerms(iops=4000.0)), (paced("WRITE", 470, 4 * KIB, depth=40),), 30
    ),
    # Azure/AKS#223: far below any IOPS of data
    "many small files": Case(
        with_terms("azure.files-payg", TIB),
        (
            lambda export, _: export.does("LOOKUP", 40),
            lambda export, _: export.does("OPEN", 40),
            paced("READ", 50, 2 * KIB, depth=1),
        ),
        20,
    ),
    "little metadata": Case(Settings(), (paced("GETATTR", 0.1, 0),)),
    "less metadata than data": Case(Settings(), (paced("GETATTR", 40, 0), _READS)),
    "more metadata than data": Case(Settings(), (paced("GETATTR", 60, 0), _READS)),
    "metadata of EFS": Case(efs(10 * GIB), (paced("LOOKUP", 192, 0),)),
    "much metadata of EFS": Case(efs(10 * GIB), (paced("LOOKUP", 1024, 0),)),
    "metadata of Azure Files": Case(
        with_terms("azure.files-ssd-v1", 100 * GIB), (paced("LOOKUP", 310, 0),)
    ),
}


@cache
def under(name: str) -> NfsClient:
    """Return the client after the load of a case."""
    case = CASES[name]
    client = NfsClient(Export(), settings=case.settings)

    def load(export: Export, number: int) -> None:
        for each in case.loads:
            each(export, number)

    run(client, load, case.seconds)
    return client


@pytest.mark.parametrize("name", CASES)
def test_case_that_was_published(name: str) -> None:
    """More of them are in tests/verdict/credits."""
    case, client = CASES[name], under(name)
    found = disk(client)
    assert (found.throttle and found.throttle.limit) == case.throttled
    if case.throttled is None:
        assert set(verdict_s(client)) <= {"unproven", "idle"}
        assert found.slow.above_promise_s == 0
    elif case.throttled == "bandwidth":
        assert verdict_s(client)["throttled"] >= 5
    assert case.load is None or found.present_load == pytest.approx(case.load, rel=0.02)
    assert found.verdict_totals.host.iowait_s is None


def test_what_is_said_of_each_case(golden: Callable[[Path, str], None]) -> None:
    lines = [f"# {name}\n{said(under(name))}\n" for name in CASES]
    golden(Path(__file__).with_name("mounts.txt"), "".join(lines))


def test_group_of_one_client() -> None:
    client = NfsClient(Export(), settings=efs(7 * TIB))
    run(client, paced("WRITE", 500, MIB, depth=16), 12)
    (group,) = Snapshot(client.machine.state).groups
    assert group.shared.title == f"one client of {NAME}"
    assert group.throttled_s["bandwidth"] >= 5
    # Reads of one client are metered by a third.
    client = NfsClient(Export(), settings=efs(40 * TIB))
    run(client, paced("READ", 900, MIB, depth=16), 8)
    (group,) = Snapshot(client.machine.state).groups
    assert group.present_load == pytest.approx(0.6, rel=0.02)
    assert set(verdict_s(client)) == {"unproven"}


def test_efs_credits_fall_by_what_this_client_uses_above_the_baseline() -> None:
    """Case 2 (jonmoblog): 10 GB, a web server: an upper bound, since others may use more."""
    client = NfsClient(Export(), settings=efs(10 * GIB))
    full = disk(client).credits
    run(client, paced("READ", 300, 256 * KIB), 10)
    run(client, lambda *_: None, 5)
    (now,) = disk(client).credits
    used = 300 * 256 * KIB * 10 / 3 - 15 * 10 / 1024 * 50 * MIB
    assert full == () or now.upper_credits <= full[0].upper_credits
    assert now.upper_credits == pytest.approx(2308974418330 - used, rel=1e-4)
    assert now.lower_credits == 0
    assert now.estimate_credits == now.upper_credits
    assert "shared by all clients: at most 100 %" in credits_document(now).describe()
    assert "throttled" not in verdict_s(client)


@pytest.mark.parametrize(
    ("terms", "operation", "full", "used_per_s"),
    [
        # A request for metadata is metered as 4 KiB (EFS), and is an I/O (Azure Files).
        ("aws.efs", "GETATTR", 2308974418330, 5000 * 4 * KIB - 100 * 50 * KIB),
        ("aws.efs", "COMMIT", 2308974418330, 5000 * 4 * KIB - 100 * 50 * KIB),
        ("azure.files-ssd-v1", "LOOKUP", 6900 * 3600, 5000 - 3100),
    ],
)
@pytest.mark.parametrize("read_every", [1, 10])
def test_operations_on_metadata_use_credits(
    terms: str, operation: str, full: int, used_per_s: float, read_every: int
) -> None:
    client = NfsClient(Export(), settings=with_terms(terms, 100 * GIB))
    run(client, paced("WRITE", 10, 4 * KIB), 1, read_every)
    (before,) = disk(client).credits
    run(client, paced(operation, 5000, 0), 20, read_every)
    (now,) = disk(client).credits
    assert before.upper_credits == full
    assert full - now.upper_credits == pytest.approx(20 * used_per_s, rel=0.06)


def test_a_slow_storage_that_others_use_is_not_stalled() -> None:
    """58 GiB, bursting, without credits: each of twelve jobs has 0.25 MiB/s, 1 MiB in 4 s."""
    client = NfsClient(Export(), settings=efs(58 * GIB))
    export = client.exports[0]
    for _ in range(6):
        export.connections.sends += 4
        run(client, lambda *_: None, 3.9)
        export.connections.sends -= 4
        export.does("WRITE", 1, MIB, took_ms=16000)
        client.tick()
    assert not {"stalled", "below", "throttled"} & set(verdict_s(client))


def test_metadata_of_a_mount_that_is_made_again_is_counted_once() -> None:
    client = NfsClient(Export())
    run(client, paced("GETATTR", 100, 0), 9)
    client.exports[0].remounted(77)
    run(client, paced("GETATTR", 100, 0), 9)
    assert "99 per second" in said(client) or "100 per second" in said(client)


def test_shares_that_use_one_limit_together_are_not_accused_alone() -> None:
    """Case 11 (azure-docs#86405): the limit of 20,000 is that of the account."""
    client = NfsClient(
        Export(),
        Export("fs1.example:/other", "/other", 51),
        settings=with_terms("azure.files-payg", 5 * TIB),
    )
    run(client, paced("READ", 10000, 4 * KIB, depth=64), 12)
    assert set(verdict_s(client)) == {"unproven"}


def test_a_row_of_a_disk_is_no_terms_of_a_mount_and_the_size_must_be_said() -> None:
    wrong = disk(NfsClient(Export(), settings=with_terms("aws.gp3", 100 * GIB))).assignment
    assert wrong.problem is not None
    assert "a type of disk; expected a network file storage" in wrong.problem
    unsized = disk(NfsClient(Export(), settings=with_terms("aws.efs"))).assignment
    assert unsized.problem is not None
    assert "found no size" in unsized.problem
    elastic = disk(NfsClient(Export(), settings=with_terms("aws.efs", mode="elastic"))).assignment
    assert elastic.problem is None
    assert elastic.limits.rates.read_iops
