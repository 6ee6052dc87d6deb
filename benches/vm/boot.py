"""`make boot`: from boot to the right limits, on machines that look like those of providers.

The Debian package is installed, nothing is configured, and the machine boots again. The provider
answers on the network of the machine: the metadata address, and the API under its own name with a
certificate that the machine trusts. Only the application credential of VK Cloud is installed, as
docs/clouds/vk.md says.
"""

import shlex
import ssl
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from socket import create_server
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from clouds.server import serving
from lab.options import start
from lab.scenario import SEED
from support.certificates import make_authority, make_signed
from vm import build
from vm.checks import NETWORK, NETWORK_FILE, install, is_skipped, parser_of, report
from vm.clouds import CLOUDS, GIB, Cloud, Disk, answer
from vm.guest import Guest
from vm.machine import Machine, booted

_METADATA = "169.254.169.254"
_METADATA_PORT = 80
_NETWORK = "user,id=net,restrict=on,net=169.254.0.0/16,host=169.254.0.2,dhcpstart=169.254.0.15"
_WITHIN_S = 300.0
"""From boot, or from plugging a disk in, to its limits; software emulation is slow."""
_POLL_S = 5.0
_RELAY = Path(__file__).with_name("relay.py")
_DROP_IN = "disksla-detect.service.d/10-openstack.conf"
_EXAMPLES = "/usr/share/doc/disksla-exporter/examples"


class Seen(NamedTuple):
    """What the daemon exports of a disk."""

    terms: str
    source: str
    limits: tuple[float | None, ...]
    """Reads, writes and bytes read per second."""
    machine_type: str


@contextmanager
def _network(cloud: Cloud, directory: Path) -> Iterator[list[str]]:
    """Serve metadata and API; yield the options of QEMU that connect the machine with them."""
    make_authority(directory, "authority")
    make_signed(directory, "server", f"DNS:{cloud.api[0]}")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(directory / "server.crt", directory / "server.key")
    answering = partial(answer, cloud)
    with create_server(("127.0.0.1", 0)) as metadata, create_server(("127.0.0.1", 0)) as api:
        ports = {_METADATA_PORT: metadata.getsockname()[1], cloud.api[1]: api.getsockname()[1]}
        relay = shlex.join([sys.executable, str(_RELAY)])
        forwarded = [
            f"guestfwd=tcp:{_METADATA}:{port}-cmd:{relay} {to}" for port, to in ports.items()
        ]
        with serving(metadata, answering), serving(api, answering, tls):
            yield ["-netdev", ",".join([_NETWORK, *forwarded]), "-device", "virtio-net,netdev=net"]


def _install(guest: Guest, cloud: Cloud, authority: str, package: Path) -> None:
    """Install the package, and what any machine of a provider has: a network with DNS and TLS."""
    guest.write(NETWORK_FILE, NETWORK)
    guest.write("/usr/lib/ssl/cert.pem", authority)
    guest.run(f"echo {_METADATA} {cloud.api[0]} >>/etc/hosts")
    guest.run("systemctl enable systemd-networkd systemd-networkd-wait-online")
    install(guest, package)
    if cloud.credentials:
        guest.write("/etc/disksla/clouds.yaml", cloud.credentials)
        guest.run(
            "chmod 600 /etc/disksla/clouds.yaml;"
            f"install -D -m 644 {_EXAMPLES}/{_DROP_IN} /etc/systemd/system/{_DROP_IN}"
        )
    guest.run("sync")


def _seen(guest: Guest, serial: str) -> Seen | None:
    """Return what the daemon exports of a disk; None if it does not, or does not answer."""
    try:
        page = guest.run("curl --silent --fail --max-time 30 http://localhost:10056/metrics")
    except OSError:
        return None
    samples = [
        sample for family in text_string_to_metric_families(page) for sample in family.samples
    ]
    return read_samples(samples, serial)


def read_samples(samples: Sequence[Sample], serial: str) -> Seen | None:
    """Return what the samples of a page say of a disk; None if they do not have it."""
    infos = [sample.labels for sample in samples if sample.name == "disksla_disk_info"]
    info = next((labels for labels in infos if labels["serial"] == serial), None)
    if info is None:
        return None
    values = {
        sample.name: sample.value
        for sample in samples
        if sample.labels.get("device") == info["device"]
    }
    read, write_, bytes_ = (
        values.get(f"disksla_limit_{name}")
        for name in ("read_iops", "write_iops", "read_bytes_per_second")
    )
    limits = (read, write_, bytes_)
    return Seen(info["terms"], info["terms_source"], limits, info["machine_type"])


def differences(cloud: Cloud, disk: Disk, seen: Seen | None) -> Iterable[str]:
    """Yield how the limits of a disk differ from what the cloud has promised."""
    if seen is None:
        yield f"{disk.serial}: not exported"
        return
    if disk.limits is not None:
        terms, *limits = disk.limits
        if (seen.terms, seen.source) != (terms, "api"):
            yield f"{disk.serial}: {seen.terms} by {seen.source}; expected {terms} by api"
        for found, expected in zip(seen.limits, limits, strict=True):
            if expected is not None and found != expected:
                yield f"{disk.serial}: limits {seen.limits}; expected {limits}"
                break
    if seen.machine_type != cloud.machine_type:
        yield f"machine type '{seen.machine_type}'; expected '{cloud.machine_type}'"


def _wait(guest: Guest, cloud: Cloud, disk: Disk) -> list[str]:
    """Wait for the limits of a disk; return how they differ at the end."""
    deadline = time.monotonic() + _WITHIN_S
    while True:
        different = list(differences(cloud, disk, _seen(guest, disk.serial)))
        if not different or time.monotonic() > deadline:
            return different
        time.sleep(_POLL_S)


def check(cloud: Cloud, image: Path, package: Path) -> list[str]:
    """Boot a machine, and return the differences between limits and what was promised."""
    with ExitStack() as undo:
        directory = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-vm-")))
        options = undo.enter_context(_network(cloud, directory))
        options += [option for text in cloud.firmware for option in ("-smbios", text)]
        file = _disk_file(directory, cloud.disk)
        options += ["-drive", f"file={file},format=raw,if=none,id=disk"]
        options += ["-device", f"{cloud.disk.device},drive=disk,id=disk"]
        try:
            machine = undo.enter_context(booted(image, package, directory, options))
            authority = (directory / "authority.crt").read_text()
            _install(machine.guest, cloud, authority, package)
            machine.reset()
            return _limits_after_boot(machine, cloud, directory)
        except OSError as error:
            return [str(error)]


def _limits_after_boot(machine: Machine, cloud: Cloud, directory: Path) -> list[str]:
    guest = machine.guest
    different = _wait(guest, cloud, cloud.disk)
    if not different and cloud.later is not None:
        driver, *options = cloud.later.device.split(",")
        machine.create_disk("later", _disk_file(directory, cloud.later))
        machine.plug_device(driver, "later", dict(each.split("=") for each in options))
        different = _wait(guest, cloud, cloud.later)
    if different:
        different += guest.run("journalctl --no-pager --boot -u 'disksla*' | tail -n 20").split(
            "\n"
        )
    return different


def _disk_file(directory: Path, disk: Disk) -> Path:
    file = directory / disk.serial
    with file.open("wb") as content:
        content.truncate(disk.size_gib * GIB)
    return file


def main(arguments: Sequence[str] | None = None) -> int:
    """Check machines; return 1 if a limit is not what was promised, else 0."""
    parser = parser_of("boot", "from boot to the right limits", CLOUDS)
    parser.add_argument("--seed", type=int, default=SEED)
    chosen = parser.parse_args(arguments)
    if is_skipped("boot"):
        return 0
    image, package = build.image(), build.package()
    return report(
        (name, check(CLOUDS[name](Random(f"{chosen.seed} {name}")), image, package))
        for name in chosen.only
    )


if __name__ == "__main__":
    start(main)
