"""`make consumers`: who uses a throttled disk, on a kernel of Debian, with nothing configured.

The package is installed on a new Debian. Units of systemd load a disk that QEMU throttles; what
the daemon says of them is compared with the kernel's own histogram of all requests, by program,
and with `io.stat`. Then: what the daemon cannot do, a unit that is held at its own limit, and ten
thousand control groups.
"""

import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from lab.options import start, write
from vm import build
from vm.checks import is_skipped, new_machine, parser_of, plug_disk, report
from vm.limits import QemuLimits
from vm.machine import Machine

_SERIAL = "data"
_IOPS = 200
_POINTS, _LEAST_SHARE = 0.02, 0.05
_LEAST_REQUESTS = 1000
_WARM_S, _MEASURE_S = 80, 60
"""Until a program had 5 % of a minute, it has no series of its own; one begins after 15 s."""
_HISTOGRAM = "/sys/kernel/tracing/events/block/block_getrq"
_UNPRIVILEGED = build.ROOT / "tests/integration/unprivileged.py"
_SOCKET = "/run/disksla-events/events.sock"
_LINE = re.compile(r"\{ dev: +(\d+), comm: (.{16}) *\} hitcount: +(\d+)")
_OWNERS = {
    "postgres": "database.service",
    "rsync": "backup.service",
    "dd": "copy.service",
    "first": "first.service",
    "second": "second.service",
}
"""Unit by program. All others are threads of the kernel: no other program uses the disk."""
_REFUSED = (
    "own event: EACCES",
    "count: 25 writes of 25",
    "filter of a counter: EEXIST",
    "period of a counter: EINVAL",
    "filter of a sampler: EEXIST",
)
UNITS = (
    *("disksla-exporter.service", "disksla-detect.service", "disksla-events@1.service"),
    "disksla-ebs.service",
)
_FILE_BYTES, _METADATA_BYTES = 64 * 2**20, 2**17
_WRITES = {
    "first": ("oflag=direct", "true"),
    "direct": ("oflag=direct", "true"),
    "synced": ("conv=fsync", "true"),
    "written-back": ("", "sync --file-system /mnt"),
}
"""By the name of a file: options of dd, and what is run when it has ended, as root."""


class Load(NamedTuple):
    """Units that load a disk: their commands by name. DISK is the device."""

    name: str
    units: Mapping[str, str]
    prepare: str = ""


def _fio(name: str, options: str) -> str:
    return f"/run/{name} --name={name} --thread --time_based --runtime=1h {options}"


_AS_POSTGRES = "setpriv --reuid=postgres --regid=postgres --clear-groups"
_POSTGRES = (
    "$(echo /usr/lib/postgresql/*/bin/postgres) -D /mnt/pgbench -c listen_addresses="
    " -c unix_socket_directories=/tmp"
)
_FILES = "--directory=/mnt --size=64m --bs=16k"
LOADS = (
    Load(
        "PostgreSQL, rsync, dd",
        {
            "database": f"exec {_AS_POSTGRES} {_POSTGRES}",
            "client": f"sleep 15; exec {_AS_POSTGRES} pgbench --host /tmp --no-vacuum"
            " --client 4 --time 3600 postgres",
            "backup": "while :; do"
            " rsync -a --whole-file --ignore-times --fsync /mnt/source/ /mnt/backup/; done",
            "copy": "exec dd if=/dev/zero of=/mnt/copy bs=16k oflag=direct conv=notrunc",
        },
        "cp -a /var/lib/postgresql/pgbench /mnt; mkdir /mnt/source /mnt/backup;"
        " for i in $(seq 40); do head -c 200000 /dev/urandom >/mnt/source/$i; done",
    ),
    Load(
        "libaio, buffered with fsync",
        {
            "first": _fio(
                "first", f"{_FILES} --direct=1 --ioengine=libaio --iodepth=8 --rw=randrw"
            ),
            "second": _fio("second", f"{_FILES} --ioengine=psync --rw=randwrite --fsync=1"),
        },
    ),
    Load(
        "io_uring, psync",
        {
            "first": _fio(
                "first", f"{_FILES} --direct=1 --ioengine=io_uring --iodepth=8 --rw=randread"
            ),
            "second": _fio("second", f"{_FILES} --direct=1 --ioengine=psync --rw=randrw"),
        },
    ),
    Load(
        "LVM",
        {
            "first": _fio(
                "first",
                "--filename=/dev/vg/one --direct=1 --ioengine=libaio --iodepth=4 --rw=randrw",
            ),
            "second": _fio(
                "second", "--filename=/dev/vg/two --direct=1 --ioengine=psync --rw=randwrite"
            ),
        },
        "umount /mnt; wipefs -qa /dev/DISK; vgcreate -q vg /dev/DISK;"
        " for name in one two; do lvcreate -q -n $name -L 256M -Wn vg; done",
    ),
)


class Seen(NamedTuple):
    """What the kernel, its control groups and the daemon have counted at one moment."""

    truth: Counter[str]
    """Requests by unit, or kernel."""
    written: Counter[str]
    """Bytes by unit, of `io.stat`."""
    requests: Counter[str]
    bytes: Counter[str]
    """By consumer, of the metrics."""

    def minus(self, before: "Seen") -> "Seen":
        """Return what was counted since."""
        return Seen(*(now - then for now, then in zip(self, before, strict=True)))


def truth_of(histogram: str, device: int) -> Counter[str]:
    """Return the requests of a disk by unit, from a histogram of the kernel."""
    found: Counter[str] = Counter()
    for number, comm, count in _LINE.findall(histogram):
        if int(number) == device:
            program = "first" if comm.startswith("iou-") else comm.strip()
            found[_OWNERS.get(program, "kernel")] += int(count)
    return found


def metrics_of(page: str, device: str) -> tuple[Counter[str], Counter[str]]:
    """Return requests and bytes of a disk by consumer."""
    found: dict[str, Counter[str]] = {"requests": Counter(), "bytes": Counter()}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            kind = sample.name.removeprefix("disksla_consumer_").removesuffix("_total")
            if kind in found and sample.labels["device"] == device:
                found[kind][sample.labels["consumer"]] += round(sample.value)
    return found["requests"], found["bytes"]


def written_of(text: str, number: str) -> Counter[str]:
    """Return the bytes of a disk by unit, from lines of `io.stat` with the unit before them."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        unit, disk, *values = line.split()
        if disk == number:
            amounts = dict(value.split("=") for value in values)
            found[unit] += int(amounts["rbytes"]) + int(amounts["wbytes"])
    return found


def unlike_truth(seen: Seen) -> Iterator[str]:
    """Yield how shares of requests and bytes differ from the truth by more than two points.

    Small consumers have no series of their own, but must not be too great.
    """
    if seen.truth.total() < _LEAST_REQUESTS:
        yield f"only {seen.truth.total()} requests; the load shows nothing"
    of_units = Counter({unit: count for unit, count in seen.bytes.items() if unit in seen.written})
    for kind, truth, found in (
        ("requests", seen.truth, seen.requests),
        ("bytes", seen.written, of_units),
    ):
        for unit in truth:
            expected, share = (each[unit] / max(1, each.total()) for each in (truth, found))
            if share > expected + _POINTS or expected - _POINTS > max(share, _LEAST_SHARE):
                yield f"{kind} of {unit}: {share:.1%}; expected {expected:.1%}"


def said(seen: Seen) -> Iterator[str]:
    """Yield a row for each unit, with its share of requests and the true one, and of bytes."""
    for unit in sorted({*seen.truth, *seen.requests}):
        shares = [each[unit] / max(1, each.total()) for each in seen]
        yield (
            f"  {unit}: {shares[2]:.1%} of requests (true: {shares[0]:.1%}),"
            f" {shares[3]:.1%} of bytes (of units: {shares[1]:.1%})"
        )


class _Trial:
    """A virtual machine with the package, and a disk that is mounted at /mnt."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.guest = machine, machine.guest
        self.device = self.guest.device(_SERIAL)
        self.number = self.guest.run(f"cat /sys/block/{self.device}/dev")

    def limit(self, iops: int | None) -> None:
        """Throttle the disk, or not."""
        self.machine.throttle(_SERIAL, QemuLimits(iops=iops))

    def run(self, script: str) -> str:
        """Run a script, in which DISK is the device."""
        return self.guest.run(script.replace("DISK", self.device))

    def begin(self, unit: str, command: str, *properties: str) -> None:
        """Start a unit."""
        options = " ".join(f"--property={each}" for each in properties)
        path = f"/run/{unit}.sh"
        self.guest.write(path, command.replace("DISK", self.device))
        self.guest.run(f"systemd-run --quiet --collect --unit={unit} {options} sh {path}")

    def seen(self) -> Seen:
        """Return what was counted up to now."""
        parts = self.run(
            "curl --silent --fail --max-time 60 http://localhost:10056/metrics"
            " | grep ^disksla_consumer_ || true; echo ---;"
            f" cat {_HISTOGRAM}/hist; echo ---; cd /sys/fs/cgroup/system.slice;"
            ' for unit in *.service; do sed "s/^/$unit /" $unit/io.stat || true; done'
        ).split("---\n")
        major, _, minor = self.number.partition(":")
        return Seen(
            truth_of(parts[1], int(major) << 20 | int(minor)),
            written_of(parts[2], self.number),
            *metrics_of(parts[0], self.device),
        )

    def under(self, load: Load) -> tuple[Seen, str]:
        """Return what is counted while a load runs, and what `explain` says then."""
        self.limit(None)
        self.run(f"systemctl restart disksla-exporter; {load.prepare or 'true'}; sync")
        self.limit(_IOPS)
        for unit, command in load.units.items():
            self.begin(unit, command)
        time.sleep(_WARM_S)
        before = self.seen()
        time.sleep(_MEASURE_S)
        found = self.seen().minus(before)
        sentences = " ".join(self.run("disksla explain DISK").split())
        shown = self.run("COLUMNS=160 disksla top -b -n 1")
        self.limit(None)
        self.run(f"systemctl stop {' '.join(load.units)}")
        return found, f"{sentences}\n{shown}"


def _counted(machine: Machine) -> str:
    """Return what the daemon says of exact counts once they are in force."""
    return machine.guest.run(
        "for name in first second; do ln -s /usr/bin/fio /run/$name; done;"
        " uname -r; cat /proc/sys/kernel/perf_event_paranoid; for try in $(seq 60); do"
        " ! curl -s localhost:10056/metrics | grep ^disksla_data_w || break; sleep 2;"
        " done"
    )


def _privileges(trial: _Trial) -> Iterator[str]:
    """Yield what a process that is nobody can do, and should not."""
    trial.guest.write("/run/unprivileged.py", _UNPRIVILEGED.read_text())
    lines = trial.run(
        f"chgrp nogroup {_SOCKET}; PYTHONPATH=/usr/lib/disksla python3 /run/unprivileged.py"
        f" {_SOCKET} DISK; chgrp disksla {_SOCKET}"
    ).splitlines()
    write("\n".join(f"  {line}" for line in lines))
    yield from (f"unprivileged: expected {line!r}" for line in _REFUSED if line not in lines)
    exposure = trial.run(
        f"for unit in {' '.join(UNITS)}; do"
        " systemd-analyze security --no-pager $unit | tail -1; done"
    )
    write("\n".join(f"  {line}" for line in exposure.splitlines()))


def _load(trial: _Trial, load: Load) -> Iterator[str]:
    """Yield how what is said of a load differs from the truth."""
    seen, text = trial.under(load)
    write(f"  {seen.truth.total()} requests\n" + "\n".join(said(seen)))
    write(f"  {text}")
    yield from (f"{load.name}: {each}" for each in unlike_truth(seen))
    [(greatest, _)] = seen.truth.most_common(1)
    if greatest != "kernel" and text.count(greatest) < 2:
        yield f"{load.name}: {greatest} is not named by explain and top"


def _bytes(trial: _Trial) -> Iterator[str]:
    """Yield how the bytes of a unit that writes a file differ from the size of the file.

    The first file makes the disk busy, so that it is watched when the others are written.
    """
    trial.limit(_IOPS)
    for name, (options, then) in _WRITES.items():
        before = trial.seen()
        path = f"/mnt/{name}"
        size = f"bs=256k count={_FILE_BYTES // 2**18}"
        trial.begin(
            "copy", f"dd if=/dev/zero of={path} {size} {options}; touch /run/{name}; sleep 1h"
        )
        trial.run(f"until test -e /run/{name}; do sleep 1; done; {then}; sleep 5")
        found = trial.seen().minus(before)
        trial.run(f"systemctl stop copy; rm {path}; sync")
        counted, said = found.written["copy.service"], found.bytes["copy.service"]
        write(f"  {name}: {_FILE_BYTES} written, {counted} by io.stat, {said} said")
        is_exact = _FILE_BYTES <= counted == said <= _FILE_BYTES + _METADATA_BYTES
        if name != "first" and not is_exact:
            yield f"bytes of {name}: {said}; expected {counted}, and about {_FILE_BYTES}"


def _own_limit(trial: _Trial) -> Iterator[str]:
    """Yield what is wrong of a unit that is held at its own limit."""
    trial.run("systemctl restart disksla-exporter")
    command = _fio("first", "--filename=/dev/DISK --direct=1 --rw=randread --bs=4k --readonly")
    trial.begin("held", command, f"IOReadIOPSMax='/dev/{trial.device} 50'")
    time.sleep(_MEASURE_S)
    text = " ".join(trial.run("disksla explain DISK").split())
    trial.run("systemctl stop held")
    expected = "held.service is held at its own limit of 50 reads per second (io.max)"
    write(f"  {text[text.find('OK') :]}")
    if expected not in text or "throttled" in text:
        yield f"not said to be held: {text}"


def _crowd(trial: _Trial) -> Iterator[str]:
    """Yield what is wrong among ten thousand control groups: of who used the disk, and the log."""
    begin = trial.run(
        "systemctl restart disksla-exporter; date +%s; mkdir /sys/fs/cgroup/crowd;"
        " echo +io >/sys/fs/cgroup/crowd/cgroup.subtree_control;"
        " cd /sys/fs/cgroup/crowd; seq 10000 | xargs mkdir"
    )
    trial.limit(_IOPS)
    trial.begin("held", _fio("first", "--filename=/dev/DISK --direct=1 --rw=randread --readonly"))
    time.sleep(_WARM_S)
    text = " ".join(trial.run("disksla explain DISK").split())
    ticks = trial.run(
        "curl -s -w 'page: %{time_total} s' localhost:10056/metrics"
        " | grep -e ^disksla_sampler_.*ticks_total -e ^page"
    )
    log = trial.run(f"journalctl --output cat --unit disksla-exporter --since @{begin}")
    trial.run("systemctl stop held; cd /sys/fs/cgroup/crowd; seq 10000 | xargs rmdir; rmdir $PWD")
    trial.limit(None)
    write(f"  {text}\n  {ticks}")
    if "held.service" not in text:
        yield f"not said who used the disk: {text}"
    if (number := log.count("too many control groups")) != 1:
        yield f"said {number} times that there are too many control groups"


_PARTS: Mapping[str, Callable[[_Trial], Iterable[str]]] = {
    "privileges": _privileges,
    "bytes": _bytes,
    **{load.name: partial(_load, load=load) for load in LOADS},
    "own limit": _own_limit,
    "crowd": _crowd,
}


def check(release: str, names: Iterable[str]) -> list[str]:
    """Go through parts of the docstring above on a release of Debian; return what differed."""
    with ExitStack() as undo:
        directory = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-vm-")))
        machine = undo.enter_context(new_machine(directory, release=release))
        plug_disk(machine, _SERIAL, directory)
        trial = _Trial(machine)
        counted = _counted(machine)
        write(counted)
        different = [] if "disksla_data_writes_total" in counted else ["no exact counts"]
        trial.run(
            "mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/DISK;"
            f" mount /dev/DISK /mnt; echo hist:keys=dev,comm:size=2048 >{_HISTOGRAM}/trigger"
        )
        for name in names:
            write(f"{name}:")
            different += _PARTS[name](trial)
            write(
                trial.run("journalctl --no-pager --output cat --priority warning --unit disksla*")
            )
        return different


def main(arguments: Sequence[str] | None = None) -> int:
    """Check releases of Debian; return 1 if anything differed, else 0."""
    parser = parser_of("consumers", str(__doc__), _PARTS)
    parser.add_argument("--release", nargs="+", default=["bookworm", "trixie"])
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    if is_skipped("consumers"):
        return 0
    return report((release, check(release, options.only)) for release in options.release)


if __name__ == "__main__":
    start(main)
