"""A recording of a disk of Yandex Cloud's limits on a machine with 2 vCPUs.

The disk is a loop device of the lab behind a token bucket of 7,000 IOPS in windows of 100 ms,
which is what 2 vCPUs allow; it is configured as a network-ssd of 300 GiB, which has 10,000. fio
reads 1,500 times per second for 2 s, and then with 64 requests in flight for 8 s.
"""

from itertools import pairwise
from pathlib import Path

from disksla.commands.replay import replay
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.window_records import WindowRecord, window_records

RECORDING = Path(__file__).parent / "recordings" / "yandex-two-vcpus.jsonl.gz"


def configuration(directory: Path, machine: str = "") -> Path:
    file = directory / "disksla.yml"
    disk = "{match: {device: loop0}, terms: yandex.network-ssd, size: 300GiB}"
    file.write_text(f"discovery: {{include: [^loop0$]}}\ndisks: [{disk}]\n{machine}")
    return file


def records(config: Path) -> list[WindowRecord]:
    states = pairwise(replay(RECORDING, config))
    return [row for before, after in states for row in window_records(before, after)]


def seconds(rows: list[WindowRecord], verdict: str, limit: str | None = None) -> float:
    return sum(row.window_s or 0.0 for row in rows if (row.verdict, row.limit) == (verdict, limit))


def test_disk_at_the_limit_of_its_machine_is_not_below_its_promise(tmp_path: Path) -> None:
    """The recording has no close samples, so that the limiter is not seen.

    In the second in which the load begins, the machine is not at its limit yet.
    """
    rows = records(configuration(tmp_path))
    assert seconds(rows, "below") < 1.1
    assert {row.limit for row in rows} <= {None, "machine_iops"}


def test_group_has_the_limits_of_the_recorded_cpus(tmp_path: Path) -> None:
    *_, last = replay(RECORDING, configuration(tmp_path))
    (group,) = Snapshot(last).groups
    assert (group.shared.machine, group.shared.limits.rates.read_iops) == ("2 vCPUs", 7000)
    assert group.devices == ("loop0",)


def test_on_a_larger_machine_the_disk_would_be_below_its_promise(tmp_path: Path) -> None:
    rows = records(configuration(tmp_path, "machine: {vcpus: 16}\n"))
    assert seconds(rows, "throttled", "machine_iops") == 0
    assert seconds(rows, "below") + seconds(rows, "throttled", "unknown") > 5
