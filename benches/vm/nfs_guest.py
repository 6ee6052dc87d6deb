"""A virtual machine that serves its own disk by NFS, and what its daemon says of the mounts."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from support import token_bucket
from vm.limits import QemuLimits
from vm.machine import Machine

SERIAL = "data"
POINT = "/mnt/nfs"
PROXY_PORT = 3049
_SERVER_PORT = 2049
_PROXY = {
    "/run/nfs_proxy.py": Path(__file__).with_name("nfs_proxy.py"),
    "/run/support/token_bucket.py": Path(token_bucket.__file__),
}
"""The proxy and what it imports, by their paths in the virtual machine."""
_AS_POSTGRES = "setpriv --reuid=postgres --regid=postgres --clear-groups"
_POSTGRESQL = (
    f"exec {_AS_POSTGRES} $(echo /usr/lib/postgresql/*/bin/postgres) -D {POINT}/pgbench"
    " -c listen_addresses= -c unix_socket_directories=/tmp"
)
_PGBENCH = (
    "until pg_isready --quiet --host=/tmp; do sleep 1; done;"
    f" exec {_AS_POSTGRES} pgbench --host /tmp --no-vacuum --client 4 --time 3600 postgres"
)
_SERVE = f"""
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/DISK
mkdir -p /srv/disk /srv/root {POINT}
mount /dev/DISK /srv/disk
for each in disk root; do
    echo "/srv/$each *(rw,sync,insecure,no_root_squash,no_subtree_check)"
done >/etc/exports
systemctl start rpcbind nfs-server
head -c 64M /dev/urandom >/srv/disk/file
cp /srv/disk/file /srv/root/file
for each in $(seq 30); do echo $each >/srv/disk/file$each; done
cp -a /var/lib/postgresql/pgbench /srv/disk
sync
"""
"""The export disk is on the disk that is throttled, root is not."""


class Seen(NamedTuple):
    """What the daemon has counted at one time of the virtual machine, and of the host."""

    uptime_s: float
    host_s: float
    verdicts: Mapping[str, float]
    """Seconds of the mount, by verdict."""
    in_flight: float
    ticks: float

    def since(self, before: "Seen", verdict: str) -> float:
        """Return by how many seconds of a verdict it has grown."""
        return self.verdicts.get(verdict, 0.0) - before.verdicts.get(verdict, 0.0)

    def ticks_per_second(self, before: "Seen") -> float:
        """Return how often the daemon has sampled since."""
        return (self.ticks - before.ticks) / (self.uptime_s - before.uptime_s)


def seen_in(page: str, device: str, host_s: float) -> Seen:
    """Return what a page says of a mount; its first line is the uptime."""
    uptime, _, metrics = page.partition("\n")
    verdicts: dict[str, float] = {}
    values: dict[str, float] = {}
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            if sample.labels.get("device", device) != device:
                continue
            values[sample.name] = sample.value
            if sample.name == "disksla_verdict_seconds_total":
                verdicts[sample.labels["verdict"]] = sample.value
    ticks = values.get("disksla_sampler_ticks_total", 0.0)
    return Seen(float(uptime), host_s, verdicts, values.get("disksla_inflight", 0.0), ticks)


def device_at(point: str = POINT, export: str = "disk") -> str:
    """Return what the daemon calls a mount."""
    return f"127.0.0.1:/srv/{export}@{point}"


class NfsGuest:
    """The virtual machine; the package is installed, and its disk plugged in."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.guest = machine, machine.guest
        self.run = machine.guest.run
        self.run(_SERVE.replace("DISK", self.guest.device(SERIAL)))
        self.run("mkdir -p /run/support")
        for path, file in _PROXY.items():
            self.guest.write(path, file.read_text())

    def mount(
        self, version: str, *, proxied: bool = False, at: str = POINT, export: str = "disk"
    ) -> None:
        """Mount an export, with nothing in the caches of the client and the server."""
        port = PROXY_PORT if proxied else _SERVER_PORT
        more = ",nolock,proto=tcp,mountproto=tcp" if version == "3" else ""
        self.run(
            f"mkdir -p {at}; echo 3 >/proc/sys/vm/drop_caches; mount -t nfs"
            f" -o vers={version},port={port},nosharecache{more} 127.0.0.1:/srv/{export} {at}"
        )

    def proxy(self, kind: str = "requests", rate: float = 1e6) -> None:
        """Start the proxy."""
        self.run(
            "systemd-run --quiet --collect --unit=proxy python3 /run/nfs_proxy.py"
            f" {PROXY_PORT} {kind} {rate} /run/proxy.log;"
            f" until grep -q ':{PROXY_PORT:04X} 00000000:0000 0A' /proc/net/tcp; do"
            " sleep 0.2; done"
        )

    def signal(self, name: str) -> None:
        """Send the proxy a signal."""
        self.run(f"systemctl kill --signal={name} proxy")

    def configure(self, terms: Mapping[str, object] | None) -> None:
        """Set the terms of the mount, or none; disks are not monitored.

        The disk below is throttled, too: to look at it closely takes half of an emulated CPU.
        """
        entries = [{"match": {"mountpoint": POINT}, "terms": terms}] if terms else []
        document = {"discovery": {"exclude": ["^[sv]d"]}, "disks": entries}
        self.guest.write("/etc/disksla/disksla.yml", json.dumps(document) + "\n")
        self.run("systemctl reload disksla-exporter")

    def begin(self, fio: str, at: str = POINT) -> None:
        """Start a load of fio in the background."""
        self.run(
            f"systemd-run --quiet --collect --unit=load{at.replace('/', '-')} fio --name=load"
            f" --filename={at}/file --size=64m --thread --time_based --runtime=1h {fio}"
        )

    def begin_postgresql(self) -> None:
        """Start a server of PostgreSQL, whose data is on the mount, and its clients."""
        for name, command in (("postgresql", _POSTGRESQL), ("pgbench", _PGBENCH)):
            self.guest.write(f"/run/{name}.sh", command)
            self.run(f"systemd-run --quiet --collect --unit=load-{name} sh /run/{name}.sh")

    def end(self) -> None:
        """Stop all loads."""
        self.run("systemctl stop 'load-*'")

    def seen(self, device: str | None = None) -> Seen:
        """Return what is counted of a mount up to now."""
        page = self.run(
            "cut -d' ' -f1 /proc/uptime; curl --silent --fail --max-time 60"
            " http://localhost:10056/metrics"
            " | grep -E '^disksla_(verdict_seconds|inflight|sampler_ticks)'"
        )
        return seen_in(f"{page}\n", device or device_at(), time.time())

    def explained(self) -> str:
        """Return what `explain` says of the mount first."""
        said = self.run(f"disksla explain {device_at()} | grep -A4 ^Now")
        return " ".join(said.split())

    def clean(self) -> None:
        """Stop loads and the proxy, and unmount."""
        self.machine.throttle(SERIAL, QemuLimits())
        self.run(
            "systemctl kill --signal=CONT proxy || true; systemctl stop 'load-*' || true;"
            " umount -a -t nfs,nfs4; systemctl stop proxy || true"
        )
