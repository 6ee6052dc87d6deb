"""Which network file storages are mounted, by the mount table and what lies beside it.

A source has the name of a server, by which most providers can be told. A proxy of this machine
(efs-utils, aznfs) hides it behind 127.0.0.1; then its port or the path tells. An address alone
tells nothing. Sources: the providers' pages on mounting; aws/efs-utils and Azure/AZNFS-mount.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from disksla.base.errors import DECODE_ERRORS
from disksla.kernel.nfs.mountstats import NFS, mount_blocks
from disksla.kernel.procfs import Mount, file_system_mounts

_TYPES = {"nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "virtiofs"}
_REGION = r"(?P<region>[a-z0-9-]+)"
_AWS_REGION = r"(?P<region>[a-z]{2,4}(?:-[a-z]{1,20}){1,3}-[0-9]{1,2})"
"""It becomes a part of the address of a request with credentials: nothing else is taken."""
_SERVERS = (
    (rf"(?:[a-z0-9-]+\.)?(?P<id>fs-[0-9a-f]+)\.efs\.{_AWS_REGION}\..+", "aws", "EFS"),
    (rf"svm-[0-9a-f]+\.(?P<id>fs-[0-9a-f]+)\.fsx\.{_AWS_REGION}\..+", "aws", "FSx for ONTAP"),
    (rf"(?P<id>fs-[0-9a-f]+)\.fsx\.{_AWS_REGION}\..+", "aws", "FSx"),
    (
        r"(?P<id>[a-z0-9]{3,24})(?:\.[a-z0-9]+)?\.file\.(?:core|storage)\..+",
        "azure",
        "Azure Files",
    ),
    (rf"(?P<id>[a-z0-9-]+)\.{_REGION}\.extreme\.nas\.aliyuncs\.com", "alibaba", "NAS Extreme"),
    (rf"(?P<id>[a-z0-9-]+)\.{_REGION}\.nas\.aliyuncs\.com", "alibaba", "NAS"),
    (rf"(?P<id>cpfs-[a-z0-9-]+)\.{_REGION}\.cpfs\.aliyuncs\.com", "alibaba", "CPFS"),
    (r"(?P<id>[0-9a-f-]{36})\.sfsturbo\.internal", "huawei", "SFS Turbo"),
    (rf"sfs-[a-z0-9]+\.{_REGION}\.myhuaweicloud\.com", "huawei", "SFS"),
)
"""Names of servers, the provider, and the name of its service."""
_VIRTIOFS = {"yandex", "scaleway"}
"""Providers whose file storages are virtiofs; the tag is the id, or a name that was chosen."""
_NETAPP = {"aws": "FSx for ONTAP", "azure": "NetApp Files", "gcp": "NetApp Volumes"}
_THIS_MACHINE = re.compile(r"127\.[0-9.]+|localhost|\[?::1\]?")
_PORT = re.compile(r"(?:^|,)port=([0-9]+)")
_STATE_FILE = re.compile(r"(fs-[0-9a-f]+)\..*\.([0-9]{1,5})", re.DOTALL)
_FSTAB_SOURCE = re.compile(
    rf"(?:[a-z0-9-]+\.)?(fs-[0-9a-f]+)(?:\.efs\.{_AWS_REGION}\.[^:]+)?(?::.*)?"
)
_STUNNEL_FILE = re.compile(r"stunnel_([a-z0-9]{3,24})\.conf")
_IMPLEMENTATION = re.compile(r"^\timpl_id:\tname='([^'\n]*)'", re.MULTILINE)


class FileStorage(msgspec.Struct, frozen=True):
    """A network file storage that is mounted; what cannot be told is None."""

    mount_point: str
    source: str
    file_system: str
    provider: str | None = None
    service: str | None = None  # the provider's name of it, for people
    id: str | None = None  # the provider's: of Azure, ACCOUNT/SHARE
    region: str | None = None
    by_efs_proxy: bool = False  # mounted by efs-utils 2.0 or later

    def describe(self) -> str:
        """Return what it is in words, such as 'EFS fs-0a1b in eu-west-1'."""
        name = f"{self.service or self.file_system} {self.id or self.source}"
        return f"{name} in {self.region}" if self.region else name


class EfsState(NamedTuple):
    """What efs-utils says of a mount."""

    id: str
    region: str | None = None
    by_efs_proxy: bool = False


class Clues(NamedTuple):
    """What lies beside the mount table."""

    provider: str | None = None  # of the machine
    efs_by_port: Mapping[int, EfsState] = {}
    efs_by_mount_point: Mapping[str, EfsState] = {}  # of /etc/fstab
    azure_accounts: frozenset[str] = frozenset()  # those to which aznfs runs a proxy
    implementations: Mapping[str, str] = {}  # names of NFS servers that state one, by mount point


def is_of_network(mount: Mount) -> bool:
    """Return whether a mount is of a network file storage."""
    return mount.file_system in _TYPES


def is_proxied(mount: Mount) -> bool:
    """Return whether the server of a mount is a program of this machine."""
    return is_of_network(mount) and bool(_THIS_MACHINE.fullmatch(_split(mount.source)[0]))


def mounted_storages(mounts: Iterable[Mount], clues: Clues) -> tuple[FileStorage, ...]:
    """Return the file storages at their mount points; of several at one point, the last.

    A mount point that is not printable is left out: no file of terms could name it.
    """
    at = {mount.mount_point: mount for mount in mounts}
    found = (mount for mount in at.values() if is_of_network(mount))
    return tuple(storage_at(mount, clues) for mount in found if mount.mount_point.isprintable())


def storage_at(mount: Mount, clues: Clues) -> FileStorage:
    """Return the file storage of a mount."""
    host, path = _split(mount.source)
    storage = FileStorage(mount.mount_point, mount.source, mount.file_system)
    if mount.file_system == "virtiofs":
        if clues.provider not in _VIRTIOFS:
            return storage
        return replace(storage, provider=clues.provider, service="file storage", id=mount.source)
    if is_proxied(mount):
        return _of_proxy(storage, mount, path, clues)
    for pattern, provider, service in _SERVERS:
        server = re.fullmatch(pattern, host)
        if server is not None:
            parts = server.groupdict()
            if provider == "azure":
                is_smb = mount.source.startswith("//")
                parts["id"] = _share(path, parts["id"], is_smb=is_smb)
            return replace(storage, provider=provider, service=service, **parts)
    implementation = clues.implementations.get(mount.mount_point, "")
    if implementation.startswith("NetApp") and clues.provider in _NETAPP:
        return replace(storage, provider=clues.provider, service=_NETAPP[clues.provider])
    return storage


def _of_proxy(storage: FileStorage, mount: Mount, path: str, clues: Clues) -> FileStorage:
    port = _PORT.search(mount.options)
    state = clues.efs_by_port.get(int(port[1])) if port is not None else None
    state = state or clues.efs_by_mount_point.get(mount.mount_point)
    if state is not None:
        return replace(storage, provider="aws", service="EFS", **state._asdict())
    share = _share(path, path.partition("/")[0], is_smb=False)
    if share is None or share.partition("/")[0] not in clues.azure_accounts:
        return storage
    return replace(storage, provider="azure", service="Azure Files", id=share)


def _split(source: str) -> tuple[str, str]:
    """Return the server and the path of a source; a tag is a server without a path."""
    if source.startswith("//"):
        host, _, path = source[2:].partition("/")
    else:
        host, _, path = source.partition(":/")
    return host.partition("@")[0].lower().rstrip("."), path.strip("/")


def _share(path: str, account: str, *, is_smb: bool) -> str | None:
    """Return ACCOUNT/SHARE of Azure; a path of NFS has both. None without a share."""
    parts = path.split("/")
    share = parts[0] if is_smb else "/".join(parts[1:2])
    return f"{account}/{share}" if re.fullmatch("[a-z0-9-]+", share) else None


class _State(msgspec.Struct, frozen=True):
    region: Any = None
    service_type: Any = None
    cmd: Any = None


def parse_efs_state(name: str, content: bytes) -> dict[int, EfsState]:
    """Return what a file of /run/efs says, by the port of its proxy; nothing if it is another.

    The name is `fs-ID.MOUNT.POINT.PORT`. The content is JSON; where that is odd, the name counts.
    Other services than EFS (S3 Files) are left out.
    """
    named = _STATE_FILE.fullmatch(name)
    if named is None:
        return {}
    try:
        state = msgspec.json.decode(content, type=_State)
    except DECODE_ERRORS:
        state = _State()
    if state.service_type not in {None, "efs"}:
        return {}
    is_region = isinstance(state.region, str) and re.fullmatch(_AWS_REGION, state.region)
    command = state.cmd[0] if isinstance(state.cmd, list) and state.cmd else ""
    by_proxy = isinstance(command, str) and command.endswith("/efs-proxy")
    return {int(named[2]): EfsState(named[1], state.region if is_region else None, by_proxy)}


def parse_fstab(text: str) -> dict[str, EfsState]:
    """Return the EFS of /etc/fstab by mount point; other lines are left out."""
    found = {}
    for line in text.split("\n"):
        fields = line.split()
        named = _FSTAB_SOURCE.fullmatch(fields[0]) if fields[2:3] == ["efs"] else None
        if named is not None:
            found[fields[1].rstrip("/")] = EfsState(named[1], named["region"])
    return found


def parse_stunnel_names(names: Iterable[str]) -> frozenset[str]:
    """Return the accounts of Azure to which aznfs runs a proxy, by the names of its files."""
    return frozenset(named[1] for name in names if (named := _STUNNEL_FILE.fullmatch(name)))


def parse_implementations(text: str) -> dict[str, str]:
    """Return the names of NFS servers that state one, by mount point, from mountstats."""
    named = ((point, _IMPLEMENTATION.search(lines)) for point, lines in mount_blocks(text))
    return {point: found[1] for point, found in named if found is not None}


_UNPRINTABLE = re.compile(r"[\s\\]|[^\x20-\U0010ffff]")


class NfsMount(NamedTuple):
    """An NFS mount, as a disk has it (`Disk`)."""

    name: str  # what is mounted, with the mount point where that is not clear
    major: int
    minor: int
    volume: str | None
    mount_points: tuple[str, ...]
    file_system_mounts: tuple[str, ...]


def nfs_mounts(mounts: Iterable[Mount]) -> list[NfsMount]:
    """Return the NFS mounts of a mount table, sorted by name, without those below others.

    Of several mounts of a superblock, the first by `rank` gives it its name.
    """

    def rank(mount: Mount) -> tuple[bool, int, str, str]:
        return mount.is_of_container, len(mount.root), mount.source, mount.mount_point

    of_superblock: defaultdict[tuple[int, int], list[Mount]] = defaultdict(list)
    for mount in {mount.mount_point: mount for mount in mounts}.values():
        if mount.file_system in NFS:
            of_superblock[mount.major, mount.minor].append(mount)
    firsts = {numbers: min(found, key=rank) for numbers, found in of_superblock.items()}
    same = Counter(first.source for first in firsts.values())
    named = []
    for numbers, first in firsts.items():
        found = of_superblock[numbers]
        is_clear = same[first.source] == 1 and not is_proxied(first)
        name = first.source if is_clear else f"{first.source}@{first.mount_point}"
        points = {mount.mount_point for mount in found if not mount.is_of_container}
        named.append(
            NfsMount(
                _UNPRINTABLE.sub(lambda match: f"\\{ord(match[0]):03o}", name),
                *numbers,
                volume=storage_at(first, Clues()).id,
                mount_points=tuple(sorted(points or {first.mount_point})),
                file_system_mounts=tuple(sorted(file_system_mounts(found))),
            )
        )
    return sorted(named, key=lambda mount: mount.name)
