"""Google Cloud: which disks this instance has, by its metadata, and by the Compute Engine API.

The metadata service has the name and type of every disk, but no size and no provisioned values.
The API has them, with the service account of the instance. Sources: the pages on metadata of
virtual machines, and the Compute Engine API reference (instances.get, disks.get).
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from disksla.base.units import GIB, MIB
from disksla.clouds.detection.findings import (
    CloudDisk,
    Detected,
    Listing,
    Metadata,
    amount,
    detect,
    each_disk,
    needed_text,
    no_provisioned_values,
    problem,
)
from disksla.clouds.http_client import (
    LINK_LOCAL,
    ExchangeError,
    Exchanges,
    Request,
    authorized,
    convert,
    decode,
    failure,
    get_by_token,
    get_response,
    items_of,
    plain_text,
    token_in,
)

_BASE = f"http://{LINK_LOCAL}/computeMetadata/v1"
_HEADERS = {"host": "metadata.google.internal", "metadata-flavor": "Google"}
"""The address is used without DNS; the name is what the service expects as its host."""
_OTHER_CLOUD = "the answer is not that of this provider; see that the provider is right"


def get_metadata(what: str, path: str) -> Exchanges[bytes]:
    """Return a value of the metadata.

    Every answer of the service has the header Metadata-Flavor; without it, something else answers.
    """
    request = Request(what, "metadata", "GET", f"{_BASE}/{path}", _HEADERS)
    response = yield from get_response(request, {"not_found": _OTHER_CLOUD})
    if response.headers.get("metadata-flavor") != "Google":
        raise failure(what, "invalid", _OTHER_CLOUD)
    return response.body


def access_token(no_account: str) -> Exchanges[str]:
    """Return a token of the service account; `no_account` explains that there is none."""
    what = "request for a token of the service account"
    path = "instance/service-accounts/default/token"
    try:
        body = yield from get_metadata(what, path)
    except ExchangeError as error:
        if error.reason != "not_found":
            raise
        raise failure(what, "no_credentials", no_account) from None
    token = token_in(what, body)
    if token is None:
        raise failure(what, "invalid", _OTHER_CLOUD)
    return token


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


def detect_google(endpoint: str | None) -> Exchanges[Detected]:
    """Return the disks of this instance; `endpoint` replaces the address of the API."""
    return detect("gcp", "Compute Engine", _metadata(), partial(_api, endpoint or _ENDPOINT))


def _metadata() -> Exchanges[Metadata[str]]:
    """Return the disks of the metadata, and the path of the instance in the API."""
    what = "request for the metadata of the instance"
    body = yield from get_metadata(what, "instance/?recursive=true")
    instance = decode(what, body, dict)
    zone, name = plain_text(instance.get("zone")), plain_text(instance.get("name"), _NAME)
    if name is None or not re.fullmatch(f"projects/{_NAME}+/zones/{_NAME}+", zone or ""):
        raise failure(what, "invalid", "it has no name or no zone")
    disks, odd = [], []
    for item in items_of(instance.get("disks")):
        try:
            disks.append(_of_metadata(what, item))
        except ExchangeError as error:
            odd.append(problem("metadata", error))
    incomplete = [disk.volume for disk in disks if has_provisioned_values(disk.api_type)]
    problems = (*odd, *(no_provisioned_values(what, volume) for volume in incomplete))
    listing = Listing(tuple(disks), problems, frozenset(incomplete))
    path = f"{zone}/instances/{name}"
    machine_type = plain_text(_last_part(instance.get("machineType")), _NAME)
    if machine_type is None:
        why = failure(what, "invalid", "the machine has no type")
        return Metadata(path, None, listing, (problem("metadata", why),))
    return Metadata(path, machine_type, listing)


def _of_metadata(what: str, item: Any) -> CloudDisk:
    """Return a disk of the metadata. Raise ExchangeError without its name or type."""
    found, why = convert(what, item, dict), "a disk has no name or no type"
    volume = needed_text(what, found.get("deviceName"), _NAME, why)
    return CloudDisk(volume, needed_text(what, found.get("type"), _NAME, why))


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
        attached = items_of(decode(what, response, dict).get("disks"))
        if not attached:
            raise failure(what, "invalid", "the instance has no disks")
        return (yield from each_disk(attached, partial(_disk, endpoint, token)))

    return (yield from authorized(partial(access_token, _NO_ACCOUNT), disks))


def _disk(endpoint: str, token: str, item: Any) -> Exchanges[CloudDisk]:
    what = "disks.get"
    attached, why = convert(what, item, dict), "a disk of the instance has no name"
    volume = needed_text(what, attached.get("deviceName"), _NAME, why)
    if attached.get("type") == _LOCAL:
        return CloudDisk(volume, _LOCAL, size_bytes=amount(attached.get("diskSizeGb"), GIB))
    path = re.search(
        f"(?:^|/)(projects/{_NAME}+/(?:zones|regions)/{_NAME}+/disks/{_NAME}+)$",
        plain_text(attached.get("source")) or "",
    )
    if path is None:
        raise failure(what, "invalid", f"{volume} has no source")
    disk = decode(what, (yield from _get(endpoint, token, what, path[1])), dict)
    api_type = needed_text(what, _last_part(disk.get("type")), _NAME, f"{volume} has no type")
    values = {
        "iops": amount(disk.get("provisionedIops")),
        "throughput": amount(disk.get("provisionedThroughput"), MIB),
    }
    names = PROVISIONED.get(api_type, tuple(values) if "hyperdisk" in api_type else ())
    chosen = {name: values[name] for name in names}
    if None in chosen.values() and api_type in PROVISIONED:
        raise failure(what, "not_found", f"{volume} has no provisioned {' or '.join(names)}")
    return CloudDisk(
        volume,
        api_type,
        size_bytes=amount(disk.get("sizeGb"), GIB),
        iops=chosen.get("iops"),
        bytes_per_second=chosen.get("throughput"),
    )


def _last_part(path: Any) -> str:
    """Return the name at the end of a path; empty if it is none."""
    return (plain_text(path) or "").rpartition("/")[2]


def _get(endpoint: str, token: str, what: str, path: str) -> Exchanges[bytes]:
    permission = f"compute.{what}"
    denied = (
        f"{permission} was denied to the service account; give it the role"
        " roles/compute.viewer, and the instance the scope compute.readonly"
    )
    return get_by_token(what, f"{endpoint}/compute/v1/{path}", token, denied)
