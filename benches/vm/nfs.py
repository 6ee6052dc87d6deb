"""`make nfs`: NFS mounts of a kernel of Debian, beside what throttles them.

The NFS server of the kernel exports a disk that QEMU throttles. The same virtual machine mounts
it, with the package installed, and fio loads the mount. Throttled seconds by the metrics are
compared with QEMU's trace, or with the log of a proxy between client and server (nfs_proxy.py).
Then: a server that does not answer for a while, and one that hangs; delegations that it takes
back; a connection that is made again; and thirty mounts.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from lab.options import start, write
from vm.checks import is_skipped, new_machine, plug_disk, report
from vm.nfs_guest import POINT, SERIAL, NfsGuest, device_at
from vm.nfs_loads import DEEP, LOADS, POINTS, READ, WARM_S, under

_VERSIONS = ("4.2", "3")
_DECIDED_S = 4
_STALL_S = 3
"""A shorter time without an answer is no stall."""
_TOLERANCE_S = 1.5
_TRACING = "/sys/kernel/tracing"
_REQUESTS = f"{_TRACING}/events/sunrpc/rpc_task_begin/enable"
_COMMANDS = {
    **dict.fromkeys(("disks", "explain", f"explain {device_at()}", "top -b -n 1", "doctor"), "0"),
    **dict.fromkeys(("serve --once", "check-config", "record /run/recording --for 2s"), "0"),
    "check": "2",
    "detect": "1",
}
"""The exit status of each, beside a mount that hangs, in a cloud that is not known."""


def unlike_stall(stopped_s: float, stalled_s: float) -> Iterator[str]:
    """Yield how stalled seconds differ from those in which the server did not answer."""
    expected_s = stopped_s if stopped_s > _STALL_S else 0.0
    if abs(stalled_s - expected_s) > (_TOLERANCE_S if expected_s else 0.0):
        yield f"{stalled_s:.1f} s stalled; expected {expected_s:.1f} s"


def _loads(nfs: NfsGuest) -> Iterator[str]:
    """Yield what differs under each load, on both versions of NFS."""
    for load in LOADS:
        for version in _VERSIONS:
            yield from under(nfs, version, load)
            nfs.clean()


def _stopped(nfs: NfsGuest) -> Iterator[str]:
    """Yield what is wrong of a server that does not answer for a while, and then again."""
    nfs.configure(None)
    for version in _VERSIONS:
        nfs.proxy()
        nfs.mount(version, proxied=True)
        nfs.begin(f"{READ} {DEEP} --rate_iops=50")
        time.sleep(WARM_S)
        for stopped_s in (2, 5):
            before = nfs.seen()
            nfs.run(
                f"systemctl kill --signal=STOP proxy; sleep {stopped_s};"
                " systemctl kill --signal=CONT proxy"
            )
            time.sleep(2 * _DECIDED_S)
            after = nfs.seen()
            stalled_s, ticks = after.since(before, "stalled"), after.ticks_per_second(before)
            write(f"  v{version}: {stalled_s:.1f} s stalled of {stopped_s}; {ticks:.1f} ticks/s")
            yield from (f"v{version}: {each}" for each in unlike_stall(stopped_s, stalled_s))
        nfs.clean()


def _hung(nfs: NfsGuest) -> Iterator[str]:
    """Yield which commands fail or do not return beside a hung mount, and what disksla asks."""
    nfs.proxy()
    nfs.mount("4.2", proxied=True)
    nfs.begin(f"{READ} {DEEP}")
    time.sleep(WARM_S)
    nfs.run(f"echo >{_TRACING}/trace; echo 1 >{_REQUESTS}")
    nfs.signal("STOP")
    time.sleep(_DECIDED_S)
    before = nfs.seen()
    for command, expected in _COMMANDS.items():
        status = nfs.run(f"timeout 120 disksla {command} >/run/said 2>&1 && echo 0 || echo $?")
        write(f"  disksla {command}: exit status {status}")
        if status != expected:
            yield f"disksla {command}: exit status {status}; expected {expected}"
    after = nfs.seen()
    stalled = after.since(before, "stalled") / (after.uptime_s - before.uptime_s)
    write(f"  {stalled:.0%} stalled; {after.ticks_per_second(before):.1f} ticks/s")
    write(f"    {nfs.explained()}")
    if stalled < 1 - POINTS:
        yield f"stalled for {stalled:.0%} of the time"
    asked = nfs.run(f"grep -c ' disksla' {_TRACING}/trace || true; echo 0 >{_REQUESTS}")
    if asked != "0":
        yield f"disksla sent {asked} requests to the server"
    nfs.clean()


def _again(nfs: NfsGuest) -> Iterator[str]:
    """Yield what is wrong after delegations were taken back, and after a new connection."""
    for version, name, happens in (
        ("4.2", "delegations", partial(_take_back, nfs)),
        ("4.2", "connection", partial(_reconnect, nfs)),
        ("3", "connection", partial(_reconnect, nfs)),
    ):
        nfs.proxy()
        nfs.mount(version, proxied=True)
        nfs.begin(f"{READ} {DEEP} --rate_iops=50")
        time.sleep(WARM_S)
        happens()
        nfs.end()
        before = nfs.seen()
        time.sleep(3 * _DECIDED_S)
        after = nfs.seen()
        stalled_s = after.since(before, "stalled")
        text = f"v{version}, {name}: {stalled_s:.1f} s stalled, {after.in_flight:g} in flight"
        write(f"  {text}")
        if after.in_flight or stalled_s:
            yield f"{text}, while nothing is done"
        nfs.clean()


def _take_back(nfs: NfsGuest) -> None:
    """Open files, and write to them on the server, so that it takes delegations back."""
    nfs.run(
        f"for each in $(seq 30); do cat {POINT}/file$each >/dev/null; done;"
        " for each in $(seq 30); do echo x >>/srv/disk/file$each; sleep 0.2; done"
    )


def _reconnect(nfs: NfsGuest) -> None:
    """End the proxy, with all connections, and start it again."""
    nfs.signal("KILL")
    nfs.run("sleep 1")
    nfs.proxy()
    time.sleep(WARM_S)


def _many(nfs: NfsGuest) -> Iterator[str]:
    """Yield what is wrong of thirty mounts, one of which hangs."""
    points = [f"/mnt/many{number}" for number in range(29)]
    for point in points:
        nfs.mount("3", at=point, export="root")
    nfs.proxy()
    nfs.mount("3", proxied=True)
    nfs.begin(f"{READ} {DEEP}")
    nfs.begin(f"{READ} --rate_iops=20", points[0])
    time.sleep(WARM_S)
    nfs.signal("STOP")
    time.sleep(2 * _DECIDED_S)
    hung = nfs.seen().verdicts["stalled"]
    others = [nfs.seen(device_at(point, "root")).verdicts["stalled"] for point in points[:2]]
    write(f"  30 mounts: {hung:.1f} s stalled of one that hangs, {others} of others")
    if hung < _DECIDED_S:
        yield f"{hung:.1f} s stalled of a mount that hangs"
    if any(others):
        yield f"{others} s stalled of other mounts"
    nfs.clean()


def _two_exports(nfs: NfsGuest) -> Iterator[str]:
    """Yield what is wrong of two exports over one connection, one of which hangs."""
    nfs.mount("3")
    nfs.mount("3", at="/mnt/root", export="root")
    nfs.begin(f"{READ} {DEEP} --rw=randwrite")
    nfs.begin(f"{READ} --rate_iops=20", "/mnt/root")
    time.sleep(WARM_S)
    other = device_at("/mnt/root", "root")
    before = nfs.seen(other)
    nfs.run("fsfreeze --freeze /srv/disk; sleep 8")
    hung_s = nfs.seen().verdicts["stalled"]
    stalled_s = nfs.seen(other).since(before, "stalled")
    nfs.run("fsfreeze --unfreeze /srv/disk")
    write(f"  {hung_s:.1f} s stalled of the export that hangs, {stalled_s:.1f} of the other")
    if stalled_s:
        yield f"{stalled_s:.1f} s stalled beside another export that hangs"
    nfs.clean()


_STEPS: Mapping[str, Callable[[NfsGuest], Iterable[str]]] = {
    "loads": _loads,
    "stopped": _stopped,
    "hung": _hung,
    "again": _again,
    "many": _many,
    "two-exports": _two_exports,
}


def check(steps: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Boot a machine; yield each step with what differed."""
    with ExitStack() as undo:
        directory = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-vm-")))
        machine = undo.enter_context(new_machine(directory))
        plug_disk(machine, SERIAL, directory)
        nfs = NfsGuest(machine)
        for step in steps:
            try:
                different = list(_STEPS[step](nfs))
            except OSError as error:
                different = [str(error)]
                nfs.clean()
            yield step, different


def main(arguments: Sequence[str] | None = None) -> int:
    """Check all steps; return 1 if anything differed, else 0."""
    parser = argparse.ArgumentParser(prog="nfs", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=_STEPS, default=[*_STEPS])
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    if is_skipped("nfs"):
        return 0
    return report(check(options.only))


if __name__ == "__main__":
    start(main)
