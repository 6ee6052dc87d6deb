"""Azure: which disks are attached to this machine, by its metadata, and by Azure Resource Manager.

The metadata service (IMDS) has the type, size and caching of every disk, and for Ultra disks what
was provisioned. The API has the rest, with the managed identity of the machine. Sources: the pages
on IMDS and on managed identities, and the REST reference (Disks - Get).
"""

from collections.abc import Mapping
from functools import partial
from typing import Literal

import msgspec

from disksla.detection.findings import (
    CloudDisk,
    Detected,
    Listing,
    Metadata,
    detect,
    each_disk,
    no_provisioned_values,
)
from disksla.exchange import (
    LINK_LOCAL,
    Exchanges,
    Explanations,
    Request,
    authorized,
    decode,
    failure,
    get_by_token,
    get_response,
    plain_text,
    query_string,
    token_in,
    whole_number,
)
from disksla.units import GIB, MB

_COMPUTE = f"http://{LINK_LOCAL}/metadata/instance/compute?api-version=2021-12-13"
_TOKEN = f"http://{LINK_LOCAL}/metadata/identity/oauth2/token"
_AUDIENCE = "https://management.azure.com/"
_ENDPOINT = "https://management.azure.com"
_HEADERS = {"metadata": "true"}
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


class _ManagedDisk(msgspec.Struct, frozen=True, rename="camel"):
    id: str | None = None
    storage_account_type: str | None = None


class _LocalDisk(msgspec.Struct, frozen=True):
    option: str | None = None


class _Attached(msgspec.Struct, frozen=True, rename="camel"):
    lun: str | int | None = None
    size_gib: str | int | None = msgspec.field(default=None, name="diskSizeGB")
    caching: str | None = None
    ops_per_second_throttle: str | int | None = None
    bytes_per_second_throttle: str | int | None = None
    managed_disk: _ManagedDisk | None = None
    diff_disk_settings: _LocalDisk | None = None


class _Storage(msgspec.Struct, frozen=True, rename="camel"):
    os_disk: _Attached
    data_disks: tuple[_Attached, ...] = ()


class _Compute(msgspec.Struct, frozen=True, rename="camel"):
    storage_profile: _Storage
    vm_size: str | None = None


class _Sku(msgspec.Struct, frozen=True):
    name: str


class _Creation(msgspec.Struct, frozen=True, rename="camel"):
    performance_plus: bool | None = None


class _Properties(msgspec.Struct, frozen=True, rename="camel"):
    size_gib: int | None = msgspec.field(default=None, name="diskSizeGB")
    tier: str | None = None
    iops: int | None = msgspec.field(default=None, name="diskIOPSReadWrite")
    mb_per_second: int | None = msgspec.field(default=None, name="diskMBpsReadWrite")
    bursting_enabled: bool | None = None
    creation_data: _Creation | None = None


class _Resource(msgspec.Struct, frozen=True):
    sku: _Sku
    properties: _Properties


_AttachedDisk = tuple[str, CloudDisk]
"""The id of the resource, and what the metadata have of the disk."""


def detect_azure(endpoint: str | None) -> Exchanges[Detected]:
    """Return the disks of this machine; `endpoint` replaces the address of the API."""
    return detect("azure", "Azure", _metadata(), partial(_api, endpoint or _ENDPOINT))


def _metadata() -> Exchanges[Metadata[list[_AttachedDisk]]]:
    what = "request for the metadata of the machine"
    request = Request(what, "metadata", "GET", _COMPUTE, _HEADERS)
    response = yield from get_response(request, _ABOUT_METADATA)
    compute = decode(what, response.body, _Compute)
    storage = compute.storage_profile
    slots = [
        ("os", storage.os_disk),
        *((plain_text(str(disk.lun), "[0-9]"), disk) for disk in storage.data_disks),
    ]
    disks: list[_AttachedDisk] = []
    incomplete = []
    for slot, attached in slots:
        managed = attached.managed_disk or _ManagedDisk()
        if attached.diff_disk_settings is not None or managed.id is None:
            continue  # on the host itself, or a page blob of a storage account
        disk = _described(slot, attached, plain_text(managed.storage_account_type, r"[\w]"))
        if disk is None:
            raise failure(what, "invalid", "a disk has no LUN or no type")
        disks.append((managed.id, disk))
        if disk.api_type in PROVISIONED and None in {disk.iops, disk.bytes_per_second}:
            incomplete.append(disk.volume)
    problems = tuple(no_provisioned_values(what, volume) for volume in incomplete)
    listing = Listing(tuple(disk for _, disk in disks), problems, frozenset(incomplete))
    return Metadata(disks, plain_text(compute.vm_size), listing)


def _described(slot: str | None, attached: _Attached, api_type: str | None) -> CloudDisk | None:
    """Return a disk of the metadata; None without its slot or type."""
    if slot is None or api_type is None:
        return None
    size_gib = whole_number(attached.size_gib)
    chosen = api_type in PROVISIONED
    return CloudDisk(
        slot,
        api_type,
        size_bytes=None if size_gib is None else size_gib * GIB,
        iops=whole_number(attached.ops_per_second_throttle) if chosen else None,
        bytes_per_second=whole_number(attached.bytes_per_second_throttle) if chosen else None,
        caching=CACHING.get(attached.caching or ""),
    )


def _api(endpoint: str, disks: list[_AttachedDisk]) -> Exchanges[Listing]:
    def resources(token: str) -> Exchanges[Listing]:
        return each_disk(disks, partial(_resource, endpoint, token))

    return (yield from authorized(_access_token, resources))


def _access_token() -> Exchanges[str]:
    """Return a token of the managed identity; without one, the service answers 400."""
    what = "request for a token of the managed identity"
    query = query_string((("api-version", "2018-02-01"), ("resource", _AUDIENCE)))
    request = Request(what, "metadata", "GET", f"{_TOKEN}?{query}", _HEADERS)
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
    """Return a disk as its resource describes it."""
    path, disk = attached
    what = f"request for disk {disk.volume}"
    if plain_text(path, r"[\w./()-]") is None or not path.startswith("/subscriptions/"):
        raise failure(what, "invalid", "its id is not that of a resource")
    denied = (
        "Microsoft.Compute/disks/read was denied to the managed identity; give it the role Reader"
        f" on {path}"
    )
    url = f"{endpoint}{path}?api-version=2024-03-02"
    resource = decode(what, (yield from get_by_token(what, url, token, denied)), _Resource)
    api_type = plain_text(resource.sku.name, r"[\w]")
    if api_type is None:
        raise failure(what, "invalid", "it has no type")
    return _with_properties(what, disk, api_type, resource.properties)


def _with_properties(
    what: str, disk: CloudDisk, api_type: str, properties: _Properties
) -> CloudDisk:
    iops = mb_per_second = None
    if api_type in PROVISIONED:
        iops = whole_number(properties.iops)
        mb_per_second = whole_number(properties.mb_per_second)
        if iops is None or mb_per_second is None:
            raise failure(what, "not_found", "it has no provisioned IOPS or bandwidth")
    size_gib = whole_number(properties.size_gib)
    return CloudDisk(
        disk.volume,
        api_type,
        size_bytes=disk.size_bytes if size_gib is None else size_gib * GIB,
        iops=iops,
        bytes_per_second=None if mb_per_second is None else mb_per_second * MB,
        caching=disk.caching,
        options=_options(api_type, properties),
    )


def _options(api_type: str, properties: _Properties) -> dict[str, str]:
    """Return the options of a disk that its type has, as the catalogue names them."""
    creation = properties.creation_data or _Creation()
    tier = plain_text(properties.tier, "[A-Z0-9]")
    values = {
        "tier": tier,
        "performance_plus": "on" if creation.performance_plus else None,
        "on_demand_burst": "on" if properties.bursting_enabled else None,
    }
    names = OPTIONS.get(api_type, ())
    return {name: value for name in names if (value := values[name]) is not None}
