"""The file of terms that `disksla detect` writes for the daemon, as JSON.

If an attempt fails, what the last good file has is written again, with the time at which it was
true, and the problems of this attempt.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Literal

import msgspec

from disksla.base.errors import DECODE_ERRORS, DiskslaError
from disksla.base.units import GIB, MB, MIB
from disksla.clouds.detection.findings import (
    KUBERNETES,
    CloudDisk,
    Detected,
    DetectionProblem,
    Listing,
    PersistentVolume,
)
from disksla.clouds.detection.openstack import SERVICES
from disksla.clouds.http_client import Source

MAX_AGE = "2h"
"""Four runs, by default."""
_METADATA_NAMES_TYPES_AS_THE_API = {"azure"}


class _Match(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of them is set."""

    volume: str | None = None
    volume_handle: str | None = None
    mountpoint: str | None = None


class _DiskTerms(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One entry; quantities are written as in the configuration."""

    match: _Match
    provider: str | None = None
    """None for that of the file."""
    api_type: str
    size: str | None = None
    iops: int | None = None
    bandwidth: str | None = None
    caching: Literal["none", "read-only", "read-write"] | None = None
    options: Mapping[str, str] = {}


class _Machine(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str | None = None


class DetectedTermsFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file."""

    source: Source
    origin: str
    as_of: str | msgspec.UnsetType = msgspec.UNSET
    """When the cloud answered; unset if it never did."""
    tried_at: str
    max_age: str = MAX_AGE
    provider: str
    machine: _Machine
    disks: tuple[_DiskTerms, ...]
    volumes: tuple[PersistentVolume, ...] | msgspec.UnsetType = msgspec.UNSET
    """Of Kubernetes."""
    problems: tuple[DetectionProblem, ...] = ()


def terms_file(
    detected: Detected, last: DetectedTermsFile | None, now: dt.datetime
) -> DetectedTermsFile:
    """Return the file to write after an attempt; `last` is the content of the present one."""
    if last is not None and last.provider != detected.provider:
        # Without credentials, all OpenStack is one.
        is_openstack = detected.provider == "openstack" and last.provider in SERVICES
        last = last if is_openstack else None
    listing, metadata = detected.api, detected.metadata
    if listing is not None:
        named = {disk.volume for disk in listing.disks}
        others = () if metadata is None else _complete(metadata)
        found = (*listing.disks, *(disk for disk in others if disk.volume not in named))
        return _file(detected, "api", tuple(map(entry_of, found)), now)
    if last is not None and last.source == "api":
        return _kept(detected, last, _agreeing(detected, last), now)
    if metadata is not None or not detected.problems:
        found = () if metadata is None else _complete(metadata)
        return _file(detected, "metadata", tuple(map(entry_of, found)), now)
    if last is not None:
        return _kept(detected, last, last.disks, now)
    attempt = _file(detected, "metadata", (), now)
    is_known = detected.machine_type is not None
    return attempt if is_known else msgspec.structs.replace(attempt, as_of=msgspec.UNSET)


def encode_terms_file(content: DetectedTermsFile) -> bytes:
    """Return the bytes of the file, indented, with a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def decode_terms_file(data: bytes) -> DetectedTermsFile:
    """Return the content of a file. Raise DiskslaError if it is not one of `disksla detect`."""
    try:
        return msgspec.json.decode(data, type=DetectedTermsFile)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"found another file than that of disksla detect: {error}") from error


def _complete(listing: Listing) -> tuple[CloudDisk, ...]:
    return tuple(disk for disk in listing.disks if disk.volume not in listing.incomplete)


def _agreeing(detected: Detected, last: DetectedTermsFile) -> tuple[_DiskTerms, ...]:
    """Return the last entries that the metadata do not contradict, and what these have of others.

    Azure's key of a disk is the number of its slot, and disks are detached and attached while the
    API cannot be asked.
    """
    if detected.metadata is None:
        return last.disks
    entries = {entry.match.volume: entry for entry in last.disks}
    found = []
    for disk in detected.metadata.disks:
        fresh, entry = entry_of(disk), entries.get(disk.volume)
        same_type = (
            detected.provider not in _METADATA_NAMES_TYPES_AS_THE_API
            or entry is None
            or fresh.api_type in {"", entry.api_type}
        )
        if entry is not None and same_type and fresh.size in {None, entry.size}:
            found.append(entry)
        elif disk.volume not in detected.metadata.incomplete:
            found.append(fresh)
    return tuple(found)


def _kept(
    detected: Detected, last: DetectedTermsFile, disks: tuple[_DiskTerms, ...], now: dt.datetime
) -> DetectedTermsFile:
    machine = last.machine if detected.machine_type is None else _Machine(detected.machine_type)
    return msgspec.structs.replace(
        last, tried_at=_time(now), machine=machine, disks=disks, problems=detected.problems
    )


def _file(
    detected: Detected, source: Source, disks: tuple[_DiskTerms, ...], now: dt.datetime
) -> DetectedTermsFile:
    word = "API" if source == "api" or detected.provider == KUBERNETES else "metadata"
    return DetectedTermsFile(
        source=source,
        origin=f"{detected.service} {word}",
        as_of=_time(now),
        tried_at=_time(now),
        provider=detected.provider,
        machine=_Machine(detected.machine_type),
        disks=disks,
        volumes=detected.volumes or msgspec.UNSET,
        problems=detected.problems,
    )


def entry_of(disk: CloudDisk) -> _DiskTerms:
    """Return the entry of a disk or file storage."""
    key = "volume_handle" if disk.is_handle else "mountpoint" if disk.is_mount_point else "volume"
    return _DiskTerms(
        match=_Match(**{key: disk.volume}),
        provider=disk.provider,
        api_type=disk.api_type,
        size=_quantity(disk.size_bytes, {"GiB": GIB}),
        iops=disk.iops,
        bandwidth=_quantity(disk.bytes_per_second, {"MiB/s": MIB, "MB/s": MB}, "B/s"),
        caching=disk.caching,
        options=disk.options,
    )


def _quantity(amount: int | None, units: Mapping[str, int], smallest: str = "B") -> str | None:
    """Return an exact quantity in the first unit of which it is a multiple."""
    if amount is None:
        return None
    for unit, factor in units.items():
        if amount % factor == 0:
            return f"{amount // factor}{unit}"
    return f"{amount}{smallest}"


def _time(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
