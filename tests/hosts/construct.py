"""Write the recordings of machines that could not be recorded; `python tests/hosts/construct.py`.

The devices are those of the sysfs trees in their directories; the counters change as on such a
kernel.
"""

import sys
from pathlib import Path

import msgspec

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from disksla.base.histogram import LatencyBin  # noqa: E402
from disksla.kernel.disks.disk import Disk  # noqa: E402 -- found through sys.path above
from disksla.state.pipeline.probe_results import ProbeResult  # noqa: E402
from disksla.state.pipeline.tick import FORMAT, RecordingHeader, Tick, encode  # noqa: E402
from support.simulated_host import Machine, a_disk  # noqa: E402


class RecordedMachine(Machine):
    """A simulated machine whose ticks are written to a recording."""

    def __init__(
        self,
        host: str,
        kernel: str,
        *disks: Disk,
        fields: int = 20,
        already: dict[str, dict[str, int]] | None = None,
    ) -> None:
        self.file = (HERE / host / "ticks.jsonl").open("wb")
        self.file.write(encode(RecordingHeader(FORMAT, 0.1, kernel, "0.1.0")))
        super().__init__(*disks, fields=fields, already=already)

    def take(self, tick: Tick) -> None:
        self.file.write(encode(tick))
        super().take(tick)


def disks_of(host: str) -> tuple[Disk, ...]:
    return msgspec.json.decode((HERE / host / "disks.json").read_bytes(), type=tuple[Disk, ...])


def old_14() -> None:
    """A kernel before 4.18, without discards and flushes; I/O on sda, one write on cciss."""
    machine = RecordedMachine("old-14", "3.10.0", *disks_of("old-14"), fields=14)
    for number in range(20):
        for device in ("sda", "sda1"):
            machine.does(device, reads=11, read_sectors=176, read_ms=83, busy_ms=80)
            machine.does(device, writes=7, written_sectors=112, write_ms=49, queue_ms=132)
            machine.does(device, inflight=number % 3)
        if number == 10:
            machine.does("cciss/c0d0", writes=1, written_sectors=64, write_ms=9)
        machine.tick()


def dm_over_nvme() -> None:
    """A request to dm-crypt is counted by LVM and NVMe too: only the NVMe disk is monitored."""
    machine = RecordedMachine("dm-over-nvme", "6.1.0-28-cloud-amd64", *disks_of("dm-over-nvme"))
    for _ in range(20):
        for device in ("dm-1", "dm-0", "nvme0n1", "nvme0n1p2"):
            machine.does(device, reads=53, read_sectors=1696, read_ms=31, busy_ms=90)
            machine.does(device, writes=23, written_sectors=368, write_ms=17, queue_ms=48)
        machine.does("nvme0n1", flushes=3, flush_ms=2)
        machine.tick()


def counter_wrap() -> None:
    """Milliseconds of vda wrap at 2^32 during reads; all counters of vdb are reset."""
    already = {
        "vda": {
            "reads": 10**10,
            "read_sectors": 10**11,
            "read_ms": 2**32 - 1000,
            "queue_ms": 2**32 - 10,
        },
        "vdb": {"reads": 5000, "read_sectors": 40000, "read_ms": 20000},
    }
    machine = RecordedMachine(
        "counter-wrap", "6.1.0-28-amd64", a_disk("vda"), a_disk("vdb", minor=16), already=already
    )
    for number in range(20):
        machine.does("vda", reads=32, read_sectors=256, read_ms=320, queue_ms=320)
        machine.numbers["vda"]["read_ms"] %= 2**32
        machine.numbers["vda"]["queue_ms"] %= 2**32
        if number == 10:
            machine.numbers["vdb"] = dict.fromkeys(machine.numbers["vdb"], 0)
        machine.does("vdb", reads=2, read_sectors=16, read_ms=8)
        machine.tick()


def probed() -> None:
    """Two probes that succeed, one skipped, one timed out, and one of a removed disk."""
    machine = RecordedMachine("probed", "6.18.0", a_disk("vda"), a_disk("vdb", minor=16))
    succeeded = ProbeResult(
        device="vda",
        kind="read-latency",
        timestamp_s=1.7e9 + 1010.0,
        target_iops=20.0,
        duration_s=5.375,
        requests=100,
        transferred_bytes=409_600,
        spent_bytes=409_600,
        achieved_iops=20.0,
        bins=(LatencyBin(0.00075, 98), LatencyBin(0.0035, 1), LatencyBin(0.125, 1)),
    )
    skipped = ProbeResult(
        device="vda",
        kind="read-latency",
        timestamp_s=1.7e9 + 1600.0,
        skipped="busy",
        message="91% of the promise is in use, over 80%",
    )
    timed_out = ProbeResult(
        device="vdb",
        kind="read-latency",
        timestamp_s=1.7e9 + 1620.0,
        failure="timeout",
        message="fio was ended after 15 s, its time limit",
        target_iops=20.0,
        duration_s=15.0,
        spent_bytes=409_600,
    )
    removed = msgspec.structs.replace(succeeded, device="vdz")
    for probes in ((), (succeeded,), (), (skipped, timed_out), (succeeded, removed), ()):
        machine.does("vda", reads=3, read_sectors=24, read_ms=3)
        machine.now_s += 0.1
        machine.take(Tick(machine.clocks(), machine.text(), probes=probes))


if __name__ == "__main__":
    (HERE / "counter-wrap").mkdir(exist_ok=True)
    (HERE / "probed").mkdir(exist_ok=True)
    old_14()
    dm_over_nvme()
    counter_wrap()
    probed()
