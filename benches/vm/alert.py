"""`make alert`: from a new machine to the first alert, on a disk that QEMU throttles.

The Debian package is installed on a Debian 12, and nothing is configured. fio loads the disk;
`disksla explain` must name the limit after ten seconds. Then the limit is written into the
configuration and reloaded, and PostgreSQL loads the disk: `explain` must say that it is throttled
at this limit, and Prometheus with the rules and Alertmanager must notify with a runbook that the
daemon serves, and with the unit that makes most requests.
"""

import json
import re
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from lab.model import Duration
from lab.options import start, write
from lab.scenario import SEED
from support.alerting import alertmanager_config, prometheus_config
from support.monitoring_stack import Pager, alertmanager, free_port, pager, prometheus
from support.waiting import eventually
from vm.checks import NETWORK, NETWORK_FILE, is_skipped, new_machine, plug_disk, report
from vm.experiment import clean_up, prepare
from vm.guest import Guest
from vm.limits import QemuLimits
from vm.machine import Machine
from vm.scenario import Phase

_PORT = 10056
_CLIENTS = 8
_LOOK_S = 10
_ALERT_S = 120.0
_TOLERANCE = 0.05
_SERIAL = "data"
_ALERT = "DiskThrottled"
_CONSUMER = "qemu-guest-agent.service"
"""The unit that runs the loads."""
_UNPROVEN = re.compile(r"no promise to compare it with: ([.0-9]+) IOPS")


def _without_configuration(guest: Guest, device: str, depth: int) -> str:
    """Load the disk for ten seconds, and return what `explain` says of it."""
    load = guest.start(
        f"fio --name=load --filename=/dev/{device} --direct=1 --ioengine=libaio --rw=randread"
        f" --iodepth={depth} --time_based --runtime={3 * _LOOK_S} >/dev/null"
    )
    guest.run(f"sleep {_LOOK_S}")
    said = guest.run(f"disksla explain {device}")
    load.output()
    return said


def unlike_unknown(said: str, iops: int) -> Iterator[str]:
    """Yield how sentences differ from those on a disk without terms behind a leaky bucket.

    Its limit is not seen, but nothing is excluded.
    """
    words = " ".join(said.split())
    served = _UNPROVEN.search(words)
    if "Nothing was wrong" in words or "No limit held" in words or "throttled" in words:
        yield f"a limit is excluded, or named, without terms: {said}"
    elif served is None or abs(float(served[1]) / iops - 1) > _TOLERANCE:
        yield f"another rate than {iops} IOPS: {said}"


def unlike_known(said: str, iops: int) -> Iterator[str]:
    """Yield how sentences differ from those on a disk that is throttled at its limit."""
    words = " ".join(said.split())
    if f"was throttled at its limit of {iops} IOPS" not in words:
        yield f"not throttled at {iops} IOPS: {said}"
    if "unknown limit" in words.partition(". ")[0]:
        yield f"also throttled at an unknown limit: {said}"


def _configure(guest: Guest, device: str, iops: int) -> None:
    terms = {"budget": "sum", "iops": iops}
    settings = {"disks": [{"match": {"device": device}, "terms": terms}]}
    guest.write("/etc/disksla/disksla.yml", json.dumps(settings))
    guest.run("disksla check-config && systemctl reload disksla-exporter")


def _with_postgresql(machine: Machine, device: str, iops: int, receiver: Pager) -> str:
    """Load the disk by PostgreSQL until the alert fires, and return what `explain` says then."""
    guest = machine.guest
    phases = (Phase(seconds=Duration(_ALERT_S), pgbench=f"--client={_CLIENTS}"),)
    machine.throttle(_SERIAL, QemuLimits())
    prepare(guest, device, phases)
    machine.throttle(_SERIAL, QemuLimits(iops=iops))
    load = guest.start(
        f"su postgres -c 'pgbench --host /tmp --no-vacuum --client {_CLIENTS}"
        f" --time {_ALERT_S:.0f} postgres' >/dev/null"
    )
    eventually(lambda: bool(receiver.alerts(_ALERT, "firing")), _ALERT_S)
    said = guest.run(f"disksla explain {device}")
    load.output()
    machine.throttle(_SERIAL, QemuLimits())
    clean_up(guest, phases)
    return said


def unlike_alert(alerts: Sequence[dict[str, Any]], device: str, daemon: str) -> Iterator[str]:
    """Yield how alerts differ from one of this disk and its user, with the daemon's runbook."""
    if not alerts:
        yield "no alert"
        return
    if alerts[0]["labels"]["device"] != device:
        yield f"alert of another disk: {alerts[0]['labels']}"
    runbook = alerts[0]["annotations"]["runbook_url"]
    if runbook != f"http://{daemon}/runbook#{_ALERT}":
        yield f"runbook at {runbook}"
    # With group commits, the journal may have more requests, but not more bytes.
    if f": {_CONSUMER}." not in alerts[0]["annotations"]["description"]:
        yield f"not named: {_CONSUMER}: {alerts[0]['annotations']['description']}"


def _runbook_lacks(alert: str, daemon: str) -> Iterator[str]:
    with urllib.request.urlopen(f"http://{daemon}/runbook") as response:
        if f'id="{alert}"' not in response.read().decode():
            yield f"the runbook has no entry {alert}"


def check(random: Random) -> list[str]:
    """Go from a new machine to the first alert; return what differed from the docstring above."""
    iops, depth = random.randint(45, 60), random.randint(8, 32)
    write(f"limit {iops} IOPS, queue depth {depth}")
    with ExitStack() as undo:
        directory = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-vm-")))
        daemon = f"127.0.0.1:{free_port()}"
        options = [
            *("-netdev", f"user,id=net,restrict=on,hostfwd=tcp:{daemon}-:{_PORT}"),
            *("-device", "virtio-net,netdev=net"),
        ]
        prepare = f"printf '{NETWORK}' >{NETWORK_FILE}; systemctl start systemd-networkd"
        machine = undo.enter_context(new_machine(directory, options, prepare=prepare))
        device = plug_disk(machine, _SERIAL, directory)
        machine.throttle(_SERIAL, QemuLimits(iops=iops))
        said = _without_configuration(machine.guest, device, depth)
        write(said)
        different = list(unlike_unknown(said, iops))
        _configure(machine.guest, device, iops)
        receiver = undo.enter_context(pager())
        alerts = alertmanager_config(receiver.address, directory)
        alerting = undo.enter_context(alertmanager(alerts, directory / "alerts"))
        config = prometheus_config(daemon, alerting.address, directory)
        undo.enter_context(prometheus(config, directory / "series"))
        said = _with_postgresql(machine, device, iops, receiver)
        write(said)
        different += unlike_known(said, iops)
        different += unlike_alert(receiver.alerts(_ALERT, "firing"), device, daemon)
        different += _runbook_lacks(_ALERT, daemon)
        return different


def main(arguments: Sequence[str] | None = None) -> int:
    """Go from a new machine to the first alert; return 1 if anything differed, else 0."""
    [*given] = sys.argv[1:] if arguments is None else arguments
    seed = int(given[0]) if given else SEED
    if is_skipped("alert"):
        return 0
    for program in ("prometheus", "prometheus-alertmanager"):
        if shutil.which(program) is None:
            write(f"alert: SKIPPED: needs {program}")
            return 0
    return report([("alert", check(Random(f"{seed} alert")))])


if __name__ == "__main__":
    start(main)
