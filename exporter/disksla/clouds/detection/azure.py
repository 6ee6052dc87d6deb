"""Azure: which disks are attached to this machine, by its metadata, and by Azure Resource Manager.

The metadata service (IMDS) has the type, size and caching of every disk, and for Ultra disks what
was provisioned. The API has the rest, with the managed identity of the machine. Sources: the pages
on IMDS and on managed identities, and the REST reference (Disks - Get).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import msgspec

from disksla.base.units import GIB, MB
from disksla.clouds.detection.findings import (
    CloudDisk,
    Detected,
    DetectionProblem,
    Listing,
    Metadata,
    amount,
    detect,
    each_disk,
    needed_text,
    no_provisioned_values,
    part_of,
    problem,
)
from disksla.clouds.http_client import (
    LINK_LOCAL,
    ExchangeError,
    Exchanges,
    Explanations,
    Request,
    authorized,
    convert,
    decode,
    failure,
    get_by_token,
    get_response,
    items_of,
    plain_text,
    query_string,
    token_in,
)

COMPUTE = f"http://{LINK_LOCAL}/metadata/instance/compute?api-version=2021-12-13"
_TOKEN = f"http://{LINK_LOCAL}/metadata/identity/oauth2/token"
_PUBLIC = "AzurePublicCloud"
_ENDPOINTS = {
    _PUBLIC: "https://management.azure.com",
    "AzureUSGovernmentCloud": "https://management.usgovcloudapi.net",
    "AzureChinaCloud": "https://management.chinacloudapi.cn",
}
"""Of the API by the name of the cloud (`azEnvironment`). Tokens are issued for one of them."""
HEADERS = {"metadata": "true"}
_LOCAL = "Local"
_NO_TOKEN = {400, 404}
"""Statuses of the token service if the machine has no identity."""
_OTHER_CLOUD = "the answer is not that of Azure; see that the provider is right"
_ABOUT_METADATA: Explanations = {"not_found": _OTHER_CLOUD}
_NO_IDENTITY = (
    "this machine has no managed identity; give it one with the role Reader on its disks"
)
PROVISIONED = {"PremiumV2_LRS", "UltraSSD_LRS"}
"""Types whose IOPS and bandwidth the customer chooses."""
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "Premium_LRS": ("tier", "performance_plus", "on_demand_burst"),
    "Premium_ZRS": ("tier", "performance_plus", "on_demand_burst"),
    "StandardSSD_LRS": ("performance_plus",),
    "StandardSSD_ZRS": ("performance_plus",),
}
"""What the customer chooses besides the size, by type."""
CACHING: Mapping[str, Literal["none", "read-only", "read-write"]] = {
    "None": "none",
    "ReadOnly": "read-only",
    "ReadWrite": "read-write",
}


_AttachedDisk = tuple[Any, CloudDisk]
"""The id of the resource, and what the metadata have of the disk."""


class _Resource(msgspec.Struct, frozen=True):
    sku: dict[str, Any]
    properties: dict[str, Any]


class _Machine(msgspec.Struct, frozen=True):
    environment: Any
    disks: list[_AttachedDisk]


def detect_azure(endpoint: str | None) -> Exchanges[Detected]:
    """Return the disks of this machine; `endpoint` replaces the address of the API."""
    return detect("azure", "Azure", _metadata(), partial(_api, endpoint))


def _metadata() -> Exchanges[Metadata[_Machine]]:
    what = "request for the metadata of the machine"
    request = Request(what, "metadata", "GET", COMPUTE, HEADERS)
    response = yield from get_response(request, _ABOUT_METADATA)
    compute = decode(what, response.body, dict)
    storage = part_of(what, compute, "storageProfile")
    if not storage.keys() & {"osDisk", "dataDisks"}:
        raise failure(what, "invalid", _OTHER_CLOUD)
    of_data = items_of(storage.get("dataDisks"))
    disks: list[_AttachedDisk] = []
    odd = []
    for slot, item in (("os", storage.get("osDisk")), *((None, item) for item in of_data)):
        try:
            disks += _attached(what, slot, item)
        except ExchangeError as error:
            odd.append(problem("metadata", error))
    machine_type = plain_text(compute.get("vmSize"))
    if machine_type is None:
        odd.append(problem("metadata", failure(what, "invalid", "the machine has no type")))
    machine = _Machine(compute.get("azEnvironment", _PUBLIC), disks)
    return Metadata(machine, machine_type, _listing(what, disks), tuple(odd))


def _listing(what: str, disks: list[_AttachedDisk]) -> Listing:
    """Return the disks of the metadata, and of which they do not have everything."""
    problems: dict[str, DetectionProblem] = {}
    for _, disk in disks:
        if not disk.api_type:
            error = failure(what, "not_found", f"it has no type of disk {disk.volume}")
            problems[disk.volume] = problem("metadata", error)
        elif disk.api_type in PROVISIONED and None in {disk.iops, disk.bytes_per_second}:
            problems[disk.volume] = no_provisioned_values(what, disk.volume)
    found = tuple(disk for _, disk in disks)
    return Listing(found, tuple(problems.values()), frozenset(problems))


def _attached(what: str, slot: str | None, item: Any) -> list[_AttachedDisk]:
    """Return a disk of the metadata; none if it is on the host, or a page blob.

    Raise ExchangeError without its slot.
    """
    disk = convert(what, item, dict)
    managed = part_of(what, disk, "managedDisk")
    is_blob = "id" not in managed and "uri" in part_of(what, disk, "vhd")
    if is_blob or part_of(what, disk, "diffDiskSettings").get("option") == _LOCAL:
        return []
    api_type = plain_text(managed.get("storageAccountType"), r"[\w]") or ""
    chosen = api_type in PROVISIONED
    described = CloudDisk(
        slot or needed_text(what, str(disk.get("lun")), "[0-9]", "a disk has no LUN"),
        api_type,
        size_bytes=amount(disk.get("diskSizeGB"), GIB),
        iops=amount(disk.get("opsPerSecondThrottle")) if chosen else None,
        bytes_per_second=amount(disk.get("bytesPerSecondThrottle")) if chosen else None,
        caching=CACHING.get(plain_text(disk.get("caching")) or ""),
    )
    return [(managed.get("id"), described)]


def _api(endpoint: str | None, machine: _Machine) -> Exchanges[Listing]:
    address, audience = api_address(endpoint, machine.environment)

    def resources(token: str) -> Exchanges[Listing]:
        return each_disk(machine.disks, partial(_resource, address, token))

    return (yield from authorized(partial(access_token, audience), resources))


def api_address(endpoint: str | None, environment: Any) -> tuple[str, str]:
    """Return the address of the API of a cloud, and for whom tokens are issued there."""
    name = plain_text(environment or _PUBLIC, "[A-Za-z0-9]") or ""
    of_cloud = _ENDPOINTS.get(name, endpoint)
    if of_cloud is None:
        why = f"the address of the API in the cloud '{name}' is not known; give it by --endpoint"
        raise failure("request for the disks", "not_found", why)
    address = endpoint or of_cloud
    return address, f"{address if address in _ENDPOINTS.values() else of_cloud}/"


def access_token(audience: str) -> Exchanges[str]:
    """Return a token of the managed identity; without one, the service answers 400."""
    what = "request for a token of the managed identity"
    query = query_string((("api-version", "2018-02-01"), ("resource", audience)))
    request = Request(what, "metadata", "GET", f"{_TOKEN}?{query}", HEADERS)
    response = yield from get_response(
        request,
        classify=lambda response: (
            ("no_credentials", _NO_IDENTITY) if response.status in _NO_TOKEN else None
        ),
    )
    token = token_in(what, response.body)
    if token is None:
        raise failure(what, "invalid", _OTHER_CLOUD)
    return token


def _resource(endpoint: str, token: str, attached: _AttachedDisk) -> Exchanges[CloudDisk]:
    path, disk = attached
    what = f"request for disk {disk.volume}"
    if plain_text(path, r"/subscriptions/[\w./()-]") is None:
        raise failure(what, "invalid", "its id is not that of a resource")
    denied = (
        "Microsoft.Compute/disks/read was denied to the managed identity; give it the role Reader"
        f" on {path}"
    )
    url = f"{endpoint}{path}?api-version=2024-03-02"
    resource = decode(what, (yield from get_by_token(what, url, token, denied)), _Resource)
    properties = resource.properties
    api_type = needed_text(what, resource.sku.get("name"), r"[\w]", "it has no type")
    iops = bytes_per_second = None
    if api_type in PROVISIONED:
        iops = amount(properties.get("diskIOPSReadWrite"))
        bytes_per_second = amount(properties.get("diskMBpsReadWrite"), MB)
        if iops is None or bytes_per_second is None:
            raise failure(what, "not_found", "it has no provisioned IOPS or bandwidth")
    return CloudDisk(
        disk.volume,
        api_type,
        size_bytes=amount(properties.get("diskSizeGB"), GIB) or disk.size_bytes,
        iops=iops,
        bytes_per_second=bytes_per_second,
        caching=disk.caching,
        options=_options(what, api_type, properties),
    )


def _options(what: str, api_type: str, properties: dict[str, Any]) -> dict[str, str]:
    """Return the options of a disk that its type has, as the catalogue names them."""
    is_faster = part_of(what, properties, "creationData").get("performancePlus") is True
    values = {
        "tier": plain_text(properties.get("tier"), "[A-Z0-9]"),
        "performance_plus": "on" if is_faster else None,
        "on_demand_burst": "on" if properties.get("burstingEnabled") is True else None,
    }
    names = OPTIONS.get(api_type, ())
    return {name: value for name in names if (value := values[name]) is not None}
