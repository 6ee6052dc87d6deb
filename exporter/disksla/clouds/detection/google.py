"""Google Cloud: which disks this instance has, and what the Filestore shares are that are mounted.

The metadata service has the name and type of every disk, but no size and no provisioned values.
The API has them, with the service account of the instance. Filestore is mounted by an address, so
its instances are listed, and the one that has the address and the share is it. Sources: the pages
on metadata of virtual machines, and the references of the Compute Engine API (instances.get,
disks.get) and of the Filestore API (instances.list).
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from disksla.base.units import GIB, MIB
from disksla.clouds import http_client as http
from disksla.clouds.detection import findings
from disksla.clouds.detection.file_storages import each_storage, value_in
from disksla.clouds.detection.findings import CloudDisk, Detected, Listing, Metadata
from disksla.kernel.nfs import FileStorage

_BASE = f"http://{http.LINK_LOCAL}/computeMetadata/v1"
_HEADERS = {"host": "metadata.google.internal", "metadata-flavor": "Google"}
"""The address is used without DNS; the name is what the service expects as its host."""
_OTHER_CLOUD = "the answer is not that of this provider; see that the provider is right"


def get_metadata(what: str, path: str) -> http.Exchanges[bytes]:
    """Return a value of the metadata.

    Every answer of the service has the header Metadata-Flavor; without it, something else answers.
    """
    request = http.Request(what, "metadata", "GET", f"{_BASE}/{path}", _HEADERS)
    response = yield from http.get_response(request, {"not_found": _OTHER_CLOUD})
    if response.headers.get("metadata-flavor") != "Google":
        raise http.failure(what, "invalid", _OTHER_CLOUD)
    return response.body


def access_token(no_account: str) -> http.Exchanges[str]:
    """Return a token of the service account; `no_account` explains that there is none."""
    what = "request for a token of the service account"
    path = "instance/service-accounts/default/token"
    try:
        body = yield from get_metadata(what, path)
    except http.ExchangeError as error:
        if error.reason != "not_found":
            raise
        raise http.failure(what, "no_credentials", no_account) from None
    token = http.token_in(what, body)
    if token is None:
        raise http.failure(what, "invalid", _OTHER_CLOUD)
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


def detect_google(endpoint: str | None) -> http.Exchanges[Detected]:
    """Return the disks of this instance; `endpoint` replaces the address of the API."""
    return findings.detect(
        "gcp", "Compute Engine", _metadata(), partial(_api, endpoint or _ENDPOINT)
    )


def _metadata() -> http.Exchanges[Metadata[str]]:
    """Return the disks of the metadata, and the path of the instance in the API."""
    what = "request for the metadata of the instance"
    body = yield from get_metadata(what, "instance/?recursive=true")
    instance = http.decode(what, body, dict)
    zone, name = (
        http.plain_text(instance.get("zone")),
        http.plain_text(instance.get("name"), _NAME),
    )
    if name is None or not re.fullmatch(f"projects/{_NAME}+/zones/{_NAME}+", zone or ""):
        raise http.failure(what, "invalid", "it has no name or no zone")
    disks, odd = [], []
    for item in http.items_of(instance.get("disks")):
        try:
            disks.append(_of_metadata(what, item))
        except http.ExchangeError as error:
            odd.append(findings.problem("metadata", error))
    incomplete = [disk.volume for disk in disks if has_provisioned_values(disk.api_type)]
    problems = (*odd, *(findings.no_provisioned_values(what, volume) for volume in incomplete))
    listing = Listing(tuple(disks), problems, frozenset(incomplete))
    path = f"{zone}/instances/{name}"
    machine_type = http.plain_text(_last_part(instance.get("machineType")), _NAME)
    if machine_type is None:
        why = http.failure(what, "invalid", "the machine has no type")
        return Metadata(path, None, listing, (findings.problem("metadata", why),))
    return Metadata(path, machine_type, listing)


def _of_metadata(what: str, item: Any) -> CloudDisk:
    """Return a disk of the metadata. Raise ExchangeError without its name or type."""
    found, why = http.convert(what, item, dict), "a disk has no name or no type"
    volume = findings.needed_text(what, found.get("deviceName"), _NAME, why)
    return CloudDisk(volume, findings.needed_text(what, found.get("type"), _NAME, why))


def has_provisioned_values(metadata_type: str) -> bool:
    """Return whether the customer chooses values of a type, by its name in the metadata.

    The names of Hyperdisks there are not documented; any that has this word counts.
    """
    name = metadata_type.lower()
    return "hyperdisk" in name or name in {"persistent-extreme", "pd-extreme"}


def _api(endpoint: str, instance: str) -> http.Exchanges[Listing]:
    def disks(token: str) -> http.Exchanges[Listing]:
        what = "instances.get"
        response = yield from _get(endpoint, token, what, instance)
        attached = http.items_of(http.decode(what, response, dict).get("disks"))
        if not attached:
            raise http.failure(what, "invalid", "the instance has no disks")
        return (yield from findings.each_disk(attached, partial(_disk, endpoint, token)))

    return (yield from http.authorized(partial(access_token, _NO_ACCOUNT), disks))


def _disk(endpoint: str, token: str, item: Any) -> http.Exchanges[CloudDisk]:
    what = "disks.get"
    attached, why = http.convert(what, item, dict), "a disk of the instance has no name"
    volume = findings.needed_text(what, attached.get("deviceName"), _NAME, why)
    if attached.get("type") == _LOCAL:
        return CloudDisk(
            volume, _LOCAL, size_bytes=findings.amount(attached.get("diskSizeGb"), GIB)
        )
    path = re.search(
        f"(?:^|/)(projects/{_NAME}+/(?:zones|regions)/{_NAME}+/disks/{_NAME}+)$",
        http.plain_text(attached.get("source")) or "",
    )
    if path is None:
        raise http.failure(what, "invalid", f"{volume} has no source")
    disk = http.decode(what, (yield from _get(endpoint, token, what, path[1])), dict)
    api_type = findings.needed_text(
        what, _last_part(disk.get("type")), _NAME, f"{volume} has no type"
    )
    values = {
        "iops": findings.amount(disk.get("provisionedIops")),
        "throughput": findings.amount(disk.get("provisionedThroughput"), MIB),
    }
    names = PROVISIONED.get(api_type, tuple(values) if "hyperdisk" in api_type else ())
    chosen = {name: values[name] for name in names}
    if None in chosen.values() and api_type in PROVISIONED:
        raise http.failure(what, "not_found", f"{volume} has no provisioned {' or '.join(names)}")
    return CloudDisk(
        volume,
        api_type,
        size_bytes=findings.amount(disk.get("sizeGb"), GIB),
        iops=chosen.get("iops"),
        bytes_per_second=chosen.get("throughput"),
    )


def _last_part(path: Any) -> str:
    """Return the name at the end of a path; empty if it is none."""
    return (http.plain_text(path) or "").rpartition("/")[2]


def _get(endpoint: str, token: str, what: str, path: str) -> http.Exchanges[bytes]:
    permission = f"compute.{what}"
    denied = (
        f"{permission} was denied to the service account; give it the role"
        " roles/compute.viewer, and the instance the scope compute.readonly"
    )
    return http.get_by_token(what, f"{endpoint}/compute/v1/{path}", token, denied)


_FILE = "https://file.googleapis.com"
_ADDRESS = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){3}):/([A-Za-z0-9_]+)(?:/.*)?")
_MOST_PAGES = 20
_TIERS = {"STANDARD": "basic-hdd", "PREMIUM": "basic-ssd", "HIGH_SCALE_SSD": "zonal"}
"""Older names of tiers."""
_WITH_PERFORMANCE = {"zonal", "regional"}
_FILE_DENIED = (
    "file.instances.list was denied to the service account; give it the role roles/file.viewer,"
    " and the instance the scope cloud-platform, if it mounts Filestore"
)
_NO_FILE_ACCOUNT = (
    "this instance has no service account; give it one with the role roles/file.viewer and the"
    " scope cloud-platform"
)


def storages_of_google(
    endpoints: Mapping[str, str], storages: tuple[FileStorage, ...]
) -> http.Exchanges[Listing]:
    """Return the terms of Filestore; `endpoints` replaces the address of `file`.

    Other NFS servers are mounted in the same way; they are left out.
    """
    mounted = [each for each in storages if _ADDRESS.fullmatch(each.source)]
    if not mounted:
        return Listing(())
    what = "request for the project of the instance"
    body = yield from get_metadata(what, "project/project-id")
    project = findings.text_in(what, body, "[a-z0-9.:-]", "it is not an id")
    url = f"{endpoints.get('file') or _FILE}/v1/projects/{project}/locations/-/instances"

    def terms(token: str) -> http.Exchanges[Listing]:
        instances = yield from _instances(url, token)
        named = {key: each for each in instances for key in _keys(each)}
        known = [each for each in mounted if _key(each.source) in named]
        return (yield from each_storage(known, partial(_filestore, named)))

    return (yield from http.authorized(partial(access_token, _NO_FILE_ACCOUNT), terms))


def _instances(url: str, token: str) -> http.Exchanges[list[Any]]:
    """Return the instances of the project in all places."""
    what = "instances.list of Filestore"

    def page(mark: str) -> http.Exchanges[tuple[list[Any], str]]:
        query = http.query_string((("pageToken", mark),)) if mark else ""
        address = f"{url}?{query}" if mark else url
        found = http.decode(
            what, (yield from http.get_by_token(what, address, token, _FILE_DENIED)), dict
        )
        mark = http.plain_text(found.get("nextPageToken")) or ""
        return list(http.items_of(found.get("instances"))), mark

    return (yield from http.pages(what, page, _MOST_PAGES))


def _key(source: str) -> str:
    """Return the address and the share of what is mounted."""
    named = _ADDRESS.fullmatch(source)
    return f"{named[1]}:/{named[2]}" if named is not None else ""


def _keys(instance: Any) -> list[str]:
    """Return how the shares of an instance are mounted."""
    networks, shares = value_in(instance, "networks"), value_in(instance, "fileShares")
    return [
        f"{address}:/{value_in(share, 'name')}"
        for network in http.items_of(networks)
        for address in http.items_of(value_in(network, "ipAddresses"))
        for share in http.items_of(shares)
    ]


def _filestore(named: Mapping[str, Any], storage: FileStorage) -> http.Exchanges[CloudDisk]:
    yield from ()  # the list has everything
    what, found = f"Filestore {storage.source}", named[_key(storage.source)]
    tier = http.plain_text(value_in(found, "tier"), "[A-Z_]")
    shares = http.items_of(value_in(found, "fileShares"))
    sizes_gib = [http.whole_number(value_in(each, "capacityGb")) for each in shares]
    if tier is None or None in sizes_gib:
        raise http.failure(what, "not_found", "it has no tier or no capacity")
    options = {"tier": _TIERS.get(tier, tier.lower().replace("_", "-"))}
    iops = None
    if value_in(found, "performanceConfig") is not None and options["tier"] in _WITH_PERFORMANCE:
        options["performance"] = "custom"
        iops = http.whole_number(value_in(found, "performanceLimits", "maxReadIops"))
    size_bytes = sum(filter(None, sizes_gib)) * GIB
    return CloudDisk("", "filestore", size_bytes=size_bytes, iops=iops, options=options)
