"""What all checks of a virtual machine share: skip them, check by name, report differences."""

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lab.options import write
from vm import build
from vm.__main__ import missing
from vm.experiment import PACKAGE
from vm.guest import Guest
from vm.machine import Machine, booted

NETWORK = "[Match]\nName=en*\n[Network]\nDHCP=ipv4\n"
NETWORK_FILE = "/etc/systemd/network/all.network"


@contextmanager
def new_machine(
    directory: Path, options: Iterable[str] = (), release: str = "bookworm", prepare: str = "true"
) -> Iterator[Machine]:
    """Boot a new Debian, in which a script and then the package are run and installed.

    `options` are further options of QEMU.
    """
    image, package = build.image(release), build.package()
    with booted(image, package, directory, options) as machine:
        install(machine.guest, package, prepare)
        yield machine


def install(guest: Guest, package: Path, prepare: str = "true") -> None:
    """Install the package after a script of the shell; the machine has it as a disk."""
    size_bytes = package.stat().st_size
    guest.run(
        f"{prepare}; cd /root; head -c {size_bytes} {PACKAGE} >package.deb;"
        " dpkg --install package.deb"
    )


def plug_disk(machine: Machine, serial: str, directory: Path) -> str:
    """Plug a disk of 1 GiB in; return its kernel name."""
    file = directory / serial
    with file.open("wb") as content:
        content.truncate(2**30)
    machine.create_disk(serial, file)
    machine.plug(serial, write_cache=True)
    return machine.guest.device(serial)


def parser_of(
    program: str, description: str, machines: Mapping[str, object]
) -> argparse.ArgumentParser:
    """Return a parser with --only, for the machines to check (default: all)."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=machines, default=[*machines])
    return parser


def is_skipped(program: str) -> bool:
    """Return whether no virtual machine can run here; write why."""
    reason = missing()
    if reason is not None:
        write(f"{program}: SKIPPED: {reason}")
    return reason is not None


def report(checks: Iterable[tuple[str, list[str]]]) -> int:
    """Write the differences of each machine; return 1 if there are any, else 0."""
    began, failed, count = time.monotonic(), 0, 0
    for name, different in checks:
        write(f"{name}: {'FAIL' if different else 'OK'}")
        for line in different:
            write(f"  {line}")
        failed += bool(different)
        count += 1
    write(f"{failed} of {count} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0
