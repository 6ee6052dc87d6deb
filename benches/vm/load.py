"""Loads in the virtual machine: fio on the device, PostgreSQL on a file system on it."""

import shlex
import time
from collections.abc import Callable, Sequence

from vm.guest import Guest
from vm.scenario import Event, Phase

_MOUNT_POINT = "/mnt"
_DATA = f"{_MOUNT_POINT}/pgbench"
_SERVER = "/usr/lib/postgresql/15/bin/pg_ctl --silent --pgdata " + _DATA
_OPTIONS = "-c listen_addresses= -c unix_socket_directories=/tmp"
_POLL_S = 0.05


def prepare(guest: Guest, device: str, phases: tuple[Phase, ...]) -> None:
    """Start PostgreSQL on the disk if a phase needs it."""
    if all(phase.pgbench is None for phase in phases):
        return
    start = shlex.quote(f'{_SERVER} --log /tmp/server.log --options "{_OPTIONS}" start')
    guest.run(
        f"mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/{device} >/dev/null;"
        f"mount /dev/{device} {_MOUNT_POINT}; cp -a /var/lib/postgresql/pgbench {_MOUNT_POINT}/;"
        f"sync; su postgres -c {start} >/dev/null; sync"
    )


def clean_up(guest: Guest, phases: tuple[Phase, ...]) -> None:
    """Stop PostgreSQL; the disk must be unlimited, or this takes long."""
    if any(phase.pgbench is not None for phase in phases):
        stop = shlex.quote(f"{_SERVER} --mode immediate stop")
        guest.run(f"su postgres -c {stop} >/dev/null; umount {_MOUNT_POINT}")


def run_phases(
    guest: Guest, phases: Sequence[tuple[str, Phase]], happen: Callable[[Event], None]
) -> None:
    """Run phases, each on a device, together to their end, with the events of the first.

    A program may fail only if its disk is unplugged.
    """
    commands = [guest.start(_script(device, phase)) for device, phase in phases]
    begun_s = time.monotonic()
    events = phases[0][1].events
    for event in events:
        while time.monotonic() < begun_s + event.at:
            time.sleep(_POLL_S)
        happen(event)
    for command in commands:
        command.output(check=not any(event.replug for event in events))


def _script(device: str, phase: Phase) -> str:
    """Return the script of a phase."""
    script = f"sleep {phase.seconds}"
    if phase.fio is not None:
        script = (
            f"fio --name=vm --filename=/dev/{device} --direct=1 --thread --time_based"
            f" --runtime={phase.seconds * 1000:.0f}ms --randrepeat=1 {phase.fio} >/dev/null"
        )
    elif phase.pgbench is not None:
        pgbench = f"pgbench --host /tmp --no-vacuum --time {phase.seconds:.0f} {phase.pgbench}"
        script = f"su postgres -c {shlex.quote(f'{pgbench} postgres')} >/dev/null"
    return script
