"""`make ebs`: the statistics page of EBS, from a throttled volume to the metrics.

A target on this machine (benches/nvme) serves volumes by NVMe/TCP, throttles them, and counts into
their pages for how long. The driver of Linux attaches them in a virtual machine, where the Debian
package runs: the helper reads the pages by ioctl, and the daemon says what they say. fio and
PostgreSQL load the volumes. What the metrics say must be what the target has counted, to the
microsecond; verdicts, which the page decides where it is read, are compared with it.
"""

import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from lab.model import Bandwidth, Duration, Meter
from lab.options import start, write
from lab.scenario import SEED
from nvme.page import EBS, INSTANCE_STORE, Limit
from nvme.target import INSTANCE_STORE_MODEL, Served, Target, serving
from support.waiting import eventually
from vm.checks import NETWORK, NETWORK_FILE, is_skipped, new_machine, report
from vm.experiment import clean_up, prepare
from vm.guest import Guest
from vm.scenario import Phase

_GIB = 2**30
_FIRST = Served("vol0123456789abcdef0", _GIB)
_SECOND = Served("vol0123456789abcdef1", _GIB, magic=EBS, version=0)
_LOCAL = Served("AWS6AC3B2D1E0F9A8B7", _GIB, INSTANCE_STORE_MODEL, INSTANCE_STORE)
_OTHER = Served("vol0123456789abcdef2", _GIB, "Another Elastic Block Store")
_SERVED = (_FIRST, _SECOND, _LOCAL, _OTHER)
_QEMU_SERIAL = "vol0123456789abcdef3"
"""Of a disk of QEMU's own NVMe controller, whose model cannot be changed."""
_ADDRESS = "10.0.2.100"
_PORT = 4420
_RELAY = Path(__file__).with_name("relay.py")
_UNIT = "disksla-ebs"
_CONTINUOUSLY = Duration(0)
_LOAD_S = 15
_SETTLED_S = 8.0
"""From the end of a load until its last second has been read and compared."""
_WITHIN_S = 60.0
_CLIENTS = 8
_ROUNDING_S = 1e-5
_LEAST_EXCEEDED_S = 1.0
"""Time for which a load must exceed its limit, or it shows nothing."""
_TOLERANCE = 0.05
_LEAST_FOUND = 0.9
"""Share of throttled seconds that verdicts must find."""
_UNPRIVILEGED = "setpriv --reuid 65534 --regid 65534 --clear-groups"
_WITHOUT_CAPABILITY = "setpriv --bounding-set -sys_admin"

Seconds = Mapping[str, float]
"""By limit."""


class Load(NamedTuple):
    """A load, the limits that it meets, and the limit that must be counted."""

    name: str
    limit: Limit
    volumes: tuple[Served, ...]
    meter: Meter
    """Of each volume, or of the machine."""
    fio: str


def loads(random: Random) -> list[Load]:
    """Return one load for each limit, and one on instance store."""
    small = f"--rw=randread --bs=4k --iodepth={random.randint(8, 32)}"
    large = f"--rw=write --bs=16k --iodepth={random.randint(8, 16)}"

    def iops() -> Meter:
        return Meter("iops", iops=random.randint(60, 150), window=_CONTINUOUSLY)

    def bandwidth() -> Meter:
        rate = Bandwidth(random.randint(700, 1200) * 1000)
        return Meter("bandwidth", bandwidth=rate, window=_CONTINUOUSLY)

    return [
        Load("volume, IOPS", "iops", (_FIRST,), iops(), small),
        Load("volume, bandwidth", "bandwidth", (_SECOND,), bandwidth(), large),
        Load("machine, IOPS", "machine_iops", (_FIRST, _SECOND), iops(), small),
        Load("machine, bandwidth", "machine_bandwidth", (_FIRST, _SECOND), bandwidth(), large),
        Load("instance store", "iops", (_LOCAL,), iops(), small),
    ]


class Metrics(NamedTuple):
    """What the daemon says of one disk, in seconds by limit."""

    provider: Seconds
    throttled: Seconds


class _Ebs:
    """A virtual machine with volumes of the target."""

    def __init__(self, guest: Guest, target: Target) -> None:
        self.guest = guest
        self.target = target

    def attach(self, served: Served) -> None:
        """Connect the machine with a volume."""
        options = f"transport=tcp,traddr={_ADDRESS},trsvcid={_PORT},nqn={served.name}"
        self.guest.run(f"echo {options},nr_io_queues=1,reconnect_delay=1 >/dev/nvme-fabrics")

    def device(self, serial: str) -> str:
        """Return the kernel name of the disk with a serial number."""
        return self.guest.run(
            f"for disk in /sys/block/nvme*; do"
            f" ! grep -q {serial} $disk/device/serial || basename $disk; done"
        )

    def metrics(self, served: Served) -> Metrics:
        """Return what the daemon says of a volume."""
        page = self.guest.run(
            "curl --silent --show-error --fail --max-time 30 http://localhost:10056/metrics"
            f" | grep 'device=\"{self.device(served.serial)}\"' | grep -v _bucket"
        )
        return read_metrics(f"{page}\n")

    def helper(self, prefix: str) -> list[dict[str, object]]:
        """Return what the helper says once when it is run by a command."""
        command = self.guest.start(f"{prefix} disksla ebs-statistics --once")
        lines = command.output(check=False).decode().splitlines()
        return [json.loads(line) for line in lines]


def read_metrics(page: str) -> Metrics:
    """Return the metrics of one disk from lines of a page."""
    provider: dict[str, float] = {}
    throttled: dict[str, float] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            labels = sample.labels
            match sample.name:
                case "disksla_provider_throttled_seconds_total":
                    provider[labels["limit"]] = sample.value
                case "disksla_throttled_seconds_total":
                    throttled[labels["limit"]] = sample.value
    return Metrics(provider, throttled)


def since(after: Seconds, before: Seconds) -> dict[str, float]:
    """Return by how much counters have grown."""
    return {key: value - before.get(key, 0.0) for key, value in after.items()}


def unlike_truth(truth: Seconds, provider: Seconds) -> Iterator[str]:
    """Yield how the provider's seconds by the metrics differ from those of the target."""
    for limit, seconds in truth.items():
        found = provider.get(limit, 0.0)
        if abs(found - seconds) > _ROUNDING_S:
            yield f"{found:.6f} s at {limit}; the target has counted {seconds:.6f} s"


def unlike_verdicts(limit: str, truth: Seconds, throttled: Seconds) -> Iterator[str]:
    """Yield how throttled seconds by verdicts differ from those of the target at a limit."""
    expected = truth[limit]
    found = throttled.get(limit, 0.0)
    if not _LEAST_FOUND * expected <= found <= (1.0 + _TOLERANCE) * expected:
        yield f"{found:.1f} s throttled at {limit}; expected {expected:.1f} s, or a little less"
    elsewhere = sum(seconds for other, seconds in throttled.items() if other != limit)
    if elsewhere > _TOLERANCE * expected:
        yield f"{elsewhere:.1f} s throttled at other limits than {limit}: {throttled}"


def _measured(
    ebs: _Ebs, volumes: Sequence[Served], load: Callable[[], None]
) -> Iterator[tuple[Served, dict[str, float], Metrics]]:
    """Run a load; yield by how much the target's counters and the metrics of volumes grew."""
    truths = [ebs.target.exceeded_s(volume.serial) for volume in volumes]
    before = [ebs.metrics(volume) for volume in volumes]
    load()
    time.sleep(_SETTLED_S)
    for volume, truth, first in zip(volumes, truths, before, strict=True):
        counted = since(ebs.target.exceeded_s(volume.serial), truth)
        last = ebs.metrics(volume)
        yield (
            volume,
            counted,
            Metrics(since(last.provider, first.provider), since(last.throttled, first.throttled)),
        )


def _said(seconds: Seconds) -> str:
    kept = [f"{limit} {each:.2f}" for limit, each in seconds.items() if each > _ROUNDING_S]
    return ", ".join(kept) or "none"


def _first_reading(ebs: _Ebs) -> Iterator[str]:
    """Yield what differs from metrics of the provider."""
    if not eventually(lambda: bool(ebs.metrics(_FIRST).provider), _WITHIN_S, 1.0):
        yield "no metrics of the provider"


def _under_load(ebs: _Ebs, load: Load) -> Iterator[str]:
    """Yield what differs after a load of fio."""
    is_of_machine = load.limit.startswith("machine_")

    def run() -> None:
        for volume in () if is_of_machine else load.volumes:
            ebs.target.limit(volume.serial, load.meter)
        ebs.target.limit_machine(*[load.meter] * is_of_machine)
        commands = [
            ebs.guest.start(
                f"fio --name=ebs --filename=/dev/{ebs.device(volume.serial)} --direct=1 --thread"
                f" --ioengine=libaio --time_based --runtime={_LOAD_S} {load.fio} >/dev/null"
            )
            for volume in load.volumes
        ]
        for command in commands:
            command.output()
        for volume in load.volumes:
            ebs.target.limit(volume.serial)
        ebs.target.limit_machine()

    for volume, truth, found in _measured(ebs, load.volumes, run):
        yield from _differences(f"{load.name}, {volume.serial}", load.limit, truth, found)
        yield from unlike_verdicts(load.limit, truth, found.throttled)


def _differences(name: str, limit: Limit, truth: Seconds, found: Metrics) -> Iterator[str]:
    write(f"{name}: {_said(truth)} s by the target; verdicts {_said(found.throttled)} s")
    if truth[limit] < _LEAST_EXCEEDED_S:
        yield f"{name}: {limit} was exceeded for {truth[limit]:.1f} s only"
    yield from unlike_truth(truth, found.provider)


def _under_postgresql(ebs: _Ebs, random: Random) -> Iterator[str]:
    """Yield what differs after PostgreSQL has loaded the first volume.

    Nothing is required of the verdicts: the emulation leaves the clients little to ask for.
    """
    phases = (Phase(seconds=Duration(2 * _LOAD_S), pgbench=f"--client={_CLIENTS}"),)
    meter = Meter("iops", iops=random.randint(8, 12), window=_CONTINUOUSLY)
    prepare(ebs.guest, ebs.device(_FIRST.serial), phases)

    def run() -> None:
        ebs.target.limit(_FIRST.serial, meter)
        ebs.guest.run(
            f"su postgres -c 'pgbench --host /tmp --no-vacuum --client {_CLIENTS}"
            f" --time {2 * _LOAD_S} postgres' >/dev/null"
        )
        ebs.target.limit(_FIRST.serial)

    [(_, truth, found)] = _measured(ebs, [_FIRST], run)
    clean_up(ebs.guest, phases)
    yield from _differences("PostgreSQL", "iops", truth, found)


def _is_read_again(ebs: _Ebs, served: Served) -> bool:
    """Wait until the page of a volume has been read, and is in the metrics; return whether."""
    asked = ebs.target.asked(served.serial)
    is_read = eventually(lambda: ebs.target.asked(served.serial) > asked + 1, _WITHIN_S, 1.0)
    return is_read and eventually(lambda: bool(ebs.metrics(served).provider), _WITHIN_S, 1.0)


def _again(ebs: _Ebs) -> Iterator[str]:
    """Yield what differs after connections were lost, and after the volume was attached again.

    Then it is another disk for the daemon, whose counters begin at 0.
    """
    before = ebs.metrics(_SECOND).provider
    ebs.target.drop(_SECOND.serial)
    if not _is_read_again(ebs, _SECOND):
        yield "the page is not read again after the connections were lost"
    if ebs.metrics(_SECOND).provider != before:
        yield f"{ebs.metrics(_SECOND).provider} after connections were lost; {before} before"
    controller = ebs.device(_SECOND.serial).partition("n1")[0]
    ebs.guest.run(f"echo 1 >/sys/class/nvme/{controller}/delete_controller")
    time.sleep(_SETTLED_S)
    ebs.target.clear(_SECOND.serial)
    ebs.attach(_SECOND)
    if not _is_read_again(ebs, _SECOND):
        yield "the page is not read after the volume was attached again"
    if any(ebs.metrics(_SECOND).provider.values()):
        yield f"{ebs.metrics(_SECOND).provider} after the volume was attached again; expected 0"


def _permissions(ebs: _Ebs) -> Iterator[str]:
    """Yield what differs when the helper runs with and without its privilege."""
    found = {str(each["device"]): each["type"] for each in ebs.helper("")}
    expected = {ebs.device(each.serial): "reading" for each in (_FIRST, _SECOND, _LOCAL)}
    if found != expected:
        yield f"the helper has read {found}; expected {expected}"
    for prefix in (_UNPRIVILEGED, _WITHOUT_CAPABILITY):
        for each in ebs.helper(prefix):
            if each.get("reason") != "permission" or "CAP_SYS_ADMIN" not in str(each["message"]):
                yield f"{prefix}: found {each}; expected an error with CAP_SYS_ADMIN"
    if ebs.target.asked(_OTHER.serial):
        yield f"{_OTHER.model} was asked for its page"


def check(random: Random) -> Iterator[tuple[str, list[str]]]:
    """Boot a machine; yield each step with what differed."""
    with ExitStack() as undo:
        directory = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-vm-")))
        target = undo.enter_context(serving(_SERVED))
        file = directory / "disk"
        with file.open("wb") as content:
            content.truncate(_GIB)
        relay = shlex.join([sys.executable, "-I", "-S", str(_RELAY)])
        forward = f"guestfwd=tcp:{_ADDRESS}:{_PORT}-cmd:{relay} {target.port}"
        options = [
            *("-netdev", f"user,id=net,restrict=on,{forward}"),
            *("-device", "virtio-net,netdev=net"),
            *("-drive", f"file={file},format=raw,if=none,id=disk"),
            *("-device", f"nvme,drive=disk,serial={_QEMU_SERIAL}"),
        ]
        prepare = f"printf '{NETWORK}' >{NETWORK_FILE}; systemctl start systemd-networkd"
        prepare += "; modprobe nvme-tcp"
        machine = undo.enter_context(new_machine(directory, options, prepare=prepare))
        machine.guest.run(f"systemctl enable --now {_UNIT}")
        ebs = _Ebs(machine.guest, target)
        for served in _SERVED:
            ebs.attach(served)
        for name, step in _steps(ebs, random):
            try:
                different = list(step())
            except OSError as error:
                different = [str(error)]
            yield name, [*different, *(machine.guest.run(_LOGS).splitlines() if different else ())]


def _steps(ebs: _Ebs, random: Random) -> Iterator[tuple[str, Callable[[], Iterable[str]]]]:
    yield "permissions", partial(_permissions, ebs)
    yield "first reading", partial(_first_reading, ebs)
    for load in loads(random):
        yield load.name, partial(_under_load, ebs, load)
    yield "PostgreSQL", partial(_under_postgresql, ebs, random)
    yield "attached again", partial(_again, ebs)


_LOGS = f"journalctl --no-pager --boot -u {_UNIT} -u disksla-exporter | tail -n 20"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check all steps; return 1 if anything differed, else 0."""
    [*given] = sys.argv[1:] if arguments is None else arguments
    seed = int(given[0]) if given else SEED
    if is_skipped("ebs"):
        return 0
    return report(check(Random(f"{seed} ebs")))


if __name__ == "__main__":
    start(main)
