"""Azure: which disks are attached to this machine, and what the file shares are that are mounted.

The metadata service (IMDS) has the type, size and caching of every disk, and for Ultra disks what
was provisioned. The API (Azure Resource Manager) has the rest, with the managed identity of the
machine. A mount has the names of the storage account and of the share; the list of the accounts of
the subscription has the resource. Sources: the pages on IMDS, on managed identities and on billing
models of Azure Files (names of SKUs), and the REST references (Disks - Get, Storage Accounts -
List, File Shares - Get).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import msgspec

from disksla.base.units import GIB, MB, MIB
from disksla.clouds import http_client as http
from disksla.clouds.detection import findings
from disksla.clouds.detection.file_storages import each_storage, value_in
from disksla.clouds.detection.findings import CloudDisk, Detected, Listing, Metadata
from disksla.kernel.nfs import FileStorage

_COMPUTE = f"http://{http.LINK_LOCAL}/metadata/instance/compute?api-version=2021-12-13"
_TOKEN = f"http://{http.LINK_LOCAL}/metadata/identity/oauth2/token"
_PUBLIC = "AzurePublicCloud"
_ENDPOINTS = {
    _PUBLIC: "https://management.azure.com",
    "AzureUSGovernmentCloud": "https://management.usgovcloudapi.net",
    "AzureChinaCloud": "https://management.chinacloudapi.cn",
}
"""Of the API by the name of the cloud (`azEnvironment`). Tokens are issued for one of them."""
_HEADERS = {"metadata": "true"}
_LOCAL = "Local"
_NO_TOKEN = {400, 404}  # statuses of the token service if the machine has no identity
_OTHER_CLOUD = "the answer is not that of Azure; see that the provider is right"
_ABOUT_METADATA: http.Explanations = {"not_found": _OTHER_CLOUD}
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


def detect_azure(endpoint: str | None) -> http.Exchanges[Detected]:
    """Return the disks of this machine; `endpoint` replaces the address of the API."""
    return findings.detect("azure", "Azure", _metadata(), partial(_api, endpoint))


def _metadata() -> http.Exchanges[Metadata[_Machine]]:
    what = "request for the metadata of the machine"
    request = http.Request(what, "metadata", "GET", _COMPUTE, _HEADERS)
    response = yield from http.get_response(request, _ABOUT_METADATA)
    compute = http.decode(what, response.body, dict)
    storage = findings.part_of(what, compute, "storageProfile")
    if not storage.keys() & {"osDisk", "dataDisks"}:
        raise http.failure(what, "invalid", _OTHER_CLOUD)
    of_data = http.items_of(storage.get("dataDisks"))
    disks: list[_AttachedDisk] = []
    odd = []
    for slot, item in (("os", storage.get("osDisk")), *((None, item) for item in of_data)):
        try:
            disks += _attached(what, slot, item)
        except http.ExchangeError as error:
            odd.append(findings.problem("metadata", error))
    machine_type = http.plain_text(compute.get("vmSize"))
    if machine_type is None:
        odd.append(
            findings.problem("metadata", http.failure(what, "invalid", "the machine has no type"))
        )
    machine = _Machine(compute.get("azEnvironment", _PUBLIC), disks)
    return Metadata(machine, machine_type, _listing(what, disks), tuple(odd))


def _listing(what: str, disks: list[_AttachedDisk]) -> Listing:
    """Return the disks of the metadata, and of which they do not have everything."""
    problems: dict[str, findings.DetectionProblem] = {}
    for _, disk in disks:
        if not disk.api_type:
            error = http.failure(what, "not_found", f"it has no type of disk {disk.volume}")
            problems[disk.volume] = findings.problem("metadata", error)
        elif disk.api_type in PROVISIONED and None in {disk.iops, disk.bytes_per_second}:
            problems[disk.volume] = findings.no_provisioned_values(what, disk.volume)
    found = tuple(disk for _, disk in disks)
    return Listing(found, tuple(problems.values()), frozenset(problems))


def _attached(what: str, slot: str | None, item: Any) -> list[_AttachedDisk]:
    """Return a disk of the metadata; none if it is on the host, or a page blob.

    Raise ExchangeError without its slot.
    """
    disk = http.convert(what, item, dict)
    managed = findings.part_of(what, disk, "managedDisk")
    is_blob = "id" not in managed and "uri" in findings.part_of(what, disk, "vhd")
    if is_blob or findings.part_of(what, disk, "diffDiskSettings").get("option") == _LOCAL:
        return []
    api_type = http.plain_text(managed.get("storageAccountType"), r"[\w]") or ""
    chosen = api_type in PROVISIONED
    described = CloudDisk(
        slot or findings.needed_text(what, str(disk.get("lun")), "[0-9]", "a disk has no LUN"),
        api_type,
        size_bytes=findings.amount(disk.get("diskSizeGB"), GIB),
        iops=findings.amount(disk.get("opsPerSecondThrottle")) if chosen else None,
        bytes_per_second=findings.amount(disk.get("bytesPerSecondThrottle")) if chosen else None,
        caching=CACHING.get(http.plain_text(disk.get("caching")) or ""),
    )
    return [(managed.get("id"), described)]


def _api(endpoint: str | None, machine: _Machine) -> http.Exchanges[Listing]:
    address, audience = _api_address(endpoint, machine.environment)

    def resources(token: str) -> http.Exchanges[Listing]:
        return findings.each_disk(machine.disks, partial(_resource, address, token))

    return (yield from http.authorized(partial(_access_token, audience), resources))


def _api_address(endpoint: str | None, environment: Any) -> tuple[str, str]:
    """Return the address of the API of a cloud, and for whom tokens are issued there."""
    name = http.plain_text(environment or _PUBLIC, "[A-Za-z0-9]") or ""
    of_cloud = _ENDPOINTS.get(name, endpoint)
    if of_cloud is None:
        why = f"the address of the API in the cloud '{name}' is not known; give it by --endpoint"
        raise http.failure("request for the disks", "not_found", why)
    address = endpoint or of_cloud
    return address, f"{address if address in _ENDPOINTS.values() else of_cloud}/"


def _access_token(audience: str) -> http.Exchanges[str]:
    """Return a token of the managed identity; without one, the service answers 400."""
    what = "request for a token of the managed identity"
    query = http.query_string((("api-version", "2018-02-01"), ("resource", audience)))
    request = http.Request(what, "metadata", "GET", f"{_TOKEN}?{query}", _HEADERS)
    response = yield from http.get_response(
        request,
        classify=lambda response: (
            ("no_credentials", _NO_IDENTITY) if response.status in _NO_TOKEN else None
        ),
    )
    token = http.token_in(what, response.body)
    if token is None:
        raise http.failure(what, "invalid", _OTHER_CLOUD)
    return token


def _resource(endpoint: str, token: str, attached: _AttachedDisk) -> http.Exchanges[CloudDisk]:
    path, disk = attached
    what = f"request for disk {disk.volume}"
    if http.plain_text(path, r"/subscriptions/[\w./()-]") is None:
        raise http.failure(what, "invalid", "its id is not that of a resource")
    denied = (
        "Microsoft.Compute/disks/read was denied to the managed identity; give it the role Reader"
        f" on {path}"
    )
    url = f"{endpoint}{path}?api-version=2024-03-02"
    resource = http.decode(
        what, (yield from http.get_by_token(what, url, token, denied)), _Resource
    )
    properties = resource.properties
    api_type = findings.needed_text(what, resource.sku.get("name"), r"[\w]", "it has no type")
    iops = bytes_per_second = None
    if api_type in PROVISIONED:
        iops = findings.amount(properties.get("diskIOPSReadWrite"))
        bytes_per_second = findings.amount(properties.get("diskMBpsReadWrite"), MB)
        if iops is None or bytes_per_second is None:
            raise http.failure(what, "not_found", "it has no provisioned IOPS or bandwidth")
    return CloudDisk(
        disk.volume,
        api_type,
        size_bytes=findings.amount(properties.get("diskSizeGB"), GIB) or disk.size_bytes,
        iops=iops,
        bytes_per_second=bytes_per_second,
        caching=disk.caching,
        options=_options(what, api_type, properties),
    )


def _options(what: str, api_type: str, properties: dict[str, Any]) -> dict[str, str]:
    """Return the options of a disk that its type has, as the catalogue names them."""
    is_faster = findings.part_of(what, properties, "creationData").get("performancePlus") is True
    values = {
        "tier": http.plain_text(properties.get("tier"), "[A-Z0-9]"),
        "performance_plus": "on" if is_faster else None,
        "on_demand_burst": "on" if properties.get("burstingEnabled") is True else None,
    }
    names = OPTIONS.get(api_type, ())
    return {name: value for name in names if (value := values[name]) is not None}


_VERSION = "api-version=2024-01-01"
_MOST_PAGES = 20
_ROWS = {
    "PremiumV2": "files-ssd-v2",
    "StandardV2": "files-hdd-v2",
    "Premium": "files-ssd-v1",
    "Standard": "files-payg",
}
"""Rows of the catalogue by the SKU of the account, without its redundancy."""


def storages_of_azure(
    endpoint: str | None, storages: tuple[FileStorage, ...]
) -> http.Exchanges[Listing]:
    """Return the terms of file shares; `endpoint` replaces the address of the API."""
    what = "request for the metadata of the machine"
    request = http.Request(what, "metadata", "GET", _COMPUTE, _HEADERS)
    machine = http.decode(what, (yield from http.get_response(request)).body, dict)
    address, audience = _api_address(endpoint, machine.get("azEnvironment"))
    why = "it has no id of the subscription"
    subscription = findings.needed_text(what, machine.get("subscriptionId"), "[0-9a-f-]", why)
    path = f"/subscriptions/{subscription}"

    def terms(token: str) -> http.Exchanges[Listing]:
        accounts = yield from _accounts(address, token, path)
        return (yield from each_storage(storages, partial(_file_share, address, token, accounts)))

    return (yield from http.authorized(partial(_access_token, audience), terms))


def _accounts(address: str, token: str, path: str) -> http.Exchanges[Mapping[str, Any]]:
    """Return the storage accounts of the subscription by name."""
    what = "request for the storage accounts"
    denied = (
        "Microsoft.Storage/storageAccounts/read was denied to the managed identity; give it the"
        f" role Reader on {path} or on the storage accounts"
    )
    first = f"{address}{path}/providers/Microsoft.Storage/storageAccounts?{_VERSION}"

    def page(mark: str) -> http.Exchanges[tuple[list[Any], str]]:
        if not (mark or first).startswith(f"{address}/"):
            raise http.failure(what, "redirected", "the next page is at another address")
        found = http.decode(
            what, (yield from http.get_by_token(what, mark or first, token, denied)), dict
        )
        return list(http.items_of(found.get("value"))), http.plain_text(
            found.get("nextLink")
        ) or ""

    items = yield from http.pages(what, page, _MOST_PAGES)
    return {str(value_in(item, "name")): item for item in items}


def _file_share(
    address: str, token: str, accounts: Mapping[str, Any], storage: FileStorage
) -> http.Exchanges[CloudDisk]:
    what = f"request for the file share {storage.id}"
    name, _, share = (storage.id or "").partition("/")
    account = accounts.get(name)
    path = http.plain_text(value_in(account, "id"), r"[\w./()-]")
    if path is None:
        why = "the managed identity sees no such storage account in the subscription"
        raise http.failure(what, "not_found", f"{why}; give it the role Reader on the account")
    denied = (
        "Microsoft.Storage/storageAccounts/fileServices/shares/read was denied to the managed"
        f" identity; give it the role Reader on {path}"
    )
    url = f"{address}{path}/fileServices/default/shares/{share}?{_VERSION}"
    found = http.decode(what, (yield from http.get_by_token(what, url, token, denied)), dict)
    return _share_terms(what, account, found.get("properties"))


def _share_terms(what: str, account: Any, found: Any) -> CloudDisk:
    sku = http.plain_text(value_in(account, "sku", "name"), r"[\w]")
    size_gib = http.whole_number(value_in(found, "shareQuota"))
    if sku is None or size_gib is None:
        raise http.failure(what, "not_found", "it has no SKU or no quota")
    row = _ROWS.get(sku.partition("_")[0], f"files-{sku}")
    is_v2 = row.endswith("-v2")
    rate = findings.amount(value_in(found, "provisionedBandwidthMibps"), MIB) if is_v2 else None
    iops = http.whole_number(value_in(found, "provisionedIops")) if is_v2 else None
    options = {}
    is_paid = value_in(found, "fileSharePaidBursting", "paidBurstingEnabled") is True
    if row == "files-ssd-v1" and is_paid:
        options["paid_burst"] = "on"
    is_small = value_in(account, "properties", "largeFileSharesState") == "Disabled"
    if row == "files-payg" and is_small:
        options["large_shares"] = "off"
    return CloudDisk(
        "", row, size_bytes=size_gib * GIB, iops=iops, bytes_per_second=rate, options=options
    )
