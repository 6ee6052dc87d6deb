"""The file of terms that `disksla detect` writes for the daemon, as JSON.

If an attempt fails, what the last good file has is written again, with the time at which it was
true, and the problems of this attempt.
"""

import datetime as dt

import msgspec

from disksla.clouds.detection.findings import KUBERNETES, CloudDisk, Detected, Listing
from disksla.clouds.detection.openstack import SERVICES
from disksla.clouds.http_client import Source
from disksla.promise.disk_entry import DiskMatch, SoldDisk
from disksla.promise.terms_file import MachineTerms, TermsFileOf

DetectedTermsFile = TermsFileOf[SoldDisk]
MAX_AGE_S = 7200.0  # four runs, by default
_METADATA_NAMES_TYPES_AS_THE_API = {"azure"}


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
    return attempt if is_known else msgspec.structs.replace(attempt, as_of_timestamp_s=None)


def _complete(listing: Listing) -> tuple[CloudDisk, ...]:
    return tuple(disk for disk in listing.disks if disk.volume not in listing.incomplete)


def _agreeing(detected: Detected, last: DetectedTermsFile) -> tuple[SoldDisk, ...]:
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
    detected: Detected, last: DetectedTermsFile, disks: tuple[SoldDisk, ...], now: dt.datetime
) -> DetectedTermsFile:
    new = detected.machine_type
    return msgspec.structs.replace(
        last,
        tried_timestamp_s=_seconds(now),
        machine=last.machine if new is None else MachineTerms(type=new),
        disks=disks,
        problems=detected.problems,
    )


def _file(
    detected: Detected, source: Source, disks: tuple[SoldDisk, ...], now: dt.datetime
) -> DetectedTermsFile:
    word = "API" if source == "api" or detected.provider == KUBERNETES else "metadata"
    return DetectedTermsFile(
        source=source,
        origin=f"{detected.service} {word}",
        as_of_timestamp_s=_seconds(now),
        tried_timestamp_s=_seconds(now),
        max_age_s=MAX_AGE_S,
        provider=detected.provider,
        machine=MachineTerms(type=detected.machine_type),
        disks=disks,
        volumes=detected.volumes,
        problems=detected.problems,
    )


def entry_of(disk: CloudDisk) -> SoldDisk:
    """Return the entry of a disk or file storage."""
    key = "volume_handle" if disk.is_handle else "mountpoint" if disk.is_mount_point else "volume"
    return SoldDisk(
        match=DiskMatch(**{key: disk.volume}),
        provider=disk.provider,
        api_type=disk.api_type,
        size=disk.size_bytes,
        iops=disk.iops,
        bytes_per_second=disk.bytes_per_second,
        caching=disk.caching,
        options=disk.options,
    )


def _seconds(moment: dt.datetime) -> float:
    return moment.timestamp() // 1  # the file has whole seconds
