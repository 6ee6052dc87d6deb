"""Google Cloud: which disks this instance has, by its metadata, and by the Compute Engine API.

The metadata service has the name and type of every disk, but no size and no provisioned values.
The API has them, with the service account of the instance. Sources: the pages on metadata of
virtual machines, and the Compute Engine API reference (instances.get, disks.get).
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from disksla.detection.findings import (
    CloudDisk,
    Detected,
    Listing,
    Metadata,
    detect,
    each_disk,
    no_provisioned_values,
    problem,
)
from disksla.detection.google_metadata import access_token, get_metadata
from disksla.exchange import (
    ExchangeError,
    Exchanges,
    authorized,
    convert,
    decode,
    failure,
    get_by_token,
    items_of,
    plain_text,
    whole_number,
)
from disksla.units import GIB, MIB

_ENDPOINT = "https://compute.googleapis.com"
_NAME = "[A-Za-z0-9._-]"
_LOCAL = "SCRATCH"
PROVISIONED: Mapping[str, tuple[str, ...]] = {
    "pd-extreme": ("iops",),
    "hyperdisk-balanced": ("iops", "throughput"),
    "hyperdisk-balanced-high-availability": ("iops", "throughput"),
    "hyperdisk-extreme": ("iops",),
    "hyperdisk-throughput": ("throughput",),
    "hyperdisk-ml": ("throughput",),
}
"""What the customer chooses, by type."""
_NO_ACCOUNT = (
    "this instance has no service account; give it one with the role roles/compute.viewer and the"
    " scope compute.readonly"
)


class _MetadataDisk(msgspec.Struct, frozen=True, rename="camel"):
    device_name: Any = None
    type: Any = None


class _MetadataInstance(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    zone: str
    machine_type: Any = None
    disks: Any = None


class _AttachedDisk(msgspec.Struct, frozen=True, rename="camel"):
    device_name: Any = None
    type: Any = None
    source: Any = None
    disk_size_gb: Any = None


class _ApiInstance(msgspec.Struct, frozen=True):
    disks: Any = None


class _ApiDisk(msgspec.Struct, frozen=True, rename="camel"):
    type: Any = None
    size_gb: Any = None
    provisioned_iops: Any = None
    provisioned_throughput: Any = None


def detect_google(endpoint: str | None) -> Exchanges[Detected]:
    """Return the disks of this instance; `endpoint` replaces the address of the API."""
    return detect("gcp", "Compute Engine", _metadata(), partial(_api, endpoint or _ENDPOINT))


def _metadata() -> Exchanges[Metadata[str]]:
    """Return the disks of the metadata, and the path of the instance in the API."""
    what = "request for the metadata of the instance"
    body = yield from get_metadata(what, "instance/?recursive=true")
    instance = decode(what, body, _MetadataInstance)
    is_zone = re.fullmatch(f"projects/{_NAME}+/zones/{_NAME}+", instance.zone)
    if not is_zone or plain_text(instance.name, _NAME) is None:
        raise failure(what, "invalid", "it has no name or no zone")
    disks, odd = [], []
    for item in items_of(instance.disks):
        try:
            disks.append(_of_metadata(what, item))
        except ExchangeError as error:
            odd.append(problem("metadata", error))
    incomplete = [disk.volume for disk in disks if has_provisioned_values(disk.api_type)]
    problems = (*odd, *(no_provisioned_values(what, volume) for volume in incomplete))
    listing = Listing(tuple(disks), problems, frozenset(incomplete))
    path = f"{instance.zone}/instances/{instance.name}"
    machine_type = plain_text(_last_part(instance.machine_type), _NAME)
    if machine_type is None:
        why = failure(what, "invalid", "the machine has no type")
        return Metadata(path, None, listing, (problem("metadata", why),))
    return Metadata(path, machine_type, listing)


def _of_metadata(what: str, item: Any) -> CloudDisk:
    """Return a disk of the metadata. Raise ExchangeError without its name or type."""
    found = convert(what, item, _MetadataDisk)
    volume, api_type = plain_text(found.device_name, _NAME), plain_text(found.type, _NAME)
    if volume is None or api_type is None:
        raise failure(what, "invalid", "a disk has no name or no type")
    return CloudDisk(volume, api_type)


def has_provisioned_values(metadata_type: str) -> bool:
    """Return whether the customer chooses values of a type, by its name in the metadata.

    The names of Hyperdisks there are not documented; any that has this word counts.
    """
    name = metadata_type.lower()
    return "hyperdisk" in name or name in {"persistent-extreme", "pd-extreme"}


def _api(endpoint: str, instance: str) -> Exchanges[Listing]:
    def disks(token: str) -> Exchanges[Listing]:
        what = "instances.get"
        response = yield from _get(endpoint, token, what, instance)
        attached = items_of(decode(what, response, _ApiInstance).disks)
        if not attached:
            raise failure(what, "invalid", "the instance has no disks")
        return (yield from each_disk(attached, partial(_disk, endpoint, token)))

    return (yield from authorized(partial(access_token, _NO_ACCOUNT), disks))


def _disk(endpoint: str, token: str, item: Any) -> Exchanges[CloudDisk]:
    what = "disks.get"
    attached = convert(what, item, _AttachedDisk)
    volume = plain_text(attached.device_name, _NAME)
    if volume is None:
        raise failure(what, "invalid", "a disk of the instance has no name")
    if attached.type == _LOCAL:
        return CloudDisk(volume, _LOCAL, size_bytes=_bytes(attached.disk_size_gb, GIB))
    path = re.search(
        f"(?:^|/)(projects/{_NAME}+/(?:zones|regions)/{_NAME}+/disks/{_NAME}+)$",
        plain_text(attached.source) or "",
    )
    if path is None:
        raise failure(what, "invalid", f"{volume} has no source")
    disk = decode(what, (yield from _get(endpoint, token, what, path[1])), _ApiDisk)
    api_type = plain_text(_last_part(disk.type), _NAME)
    if api_type is None:
        raise failure(what, "invalid", f"{volume} has no type")
    return _described(what, volume, api_type, disk)


def _described(what: str, volume: str, api_type: str, disk: _ApiDisk) -> CloudDisk:
    values = {
        "iops": whole_number(disk.provisioned_iops),
        "throughput": _bytes(disk.provisioned_throughput, MIB),
    }
    names = PROVISIONED.get(api_type, tuple(values) if "hyperdisk" in api_type else ())
    chosen = {name: values[name] for name in names}
    if None in chosen.values() and api_type in PROVISIONED:
        raise failure(what, "not_found", f"{volume} has no provisioned {' or '.join(names)}")
    return CloudDisk(
        volume,
        api_type,
        size_bytes=_bytes(disk.size_gb, GIB),
        iops=chosen.get("iops"),
        bytes_per_second=chosen.get("throughput"),
    )


def _last_part(path: Any) -> str:
    """Return the name at the end of a path; empty if it is none."""
    return (plain_text(path) or "").rpartition("/")[2]


def _bytes(number: Any, unit: int) -> int | None:
    amount = whole_number(number)
    return None if amount is None else amount * unit


def _get(endpoint: str, token: str, what: str, path: str) -> Exchanges[bytes]:
    permission = f"compute.{what}"
    denied = (
        f"{permission} was denied to the service account; give it the role"
        " roles/compute.viewer, and the instance the scope compute.readonly"
    )
    return get_by_token(what, f"{endpoint}/compute/v1/{path}", token, denied)
