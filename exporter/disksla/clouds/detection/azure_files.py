"""Azure: what the file shares are that are mounted, by Azure Resource Manager.

A mount has the names of the storage account and of the share. The list of the accounts of the
subscription has the resource. Sources: the REST references (Storage Accounts - List, File Shares -
Get), and the page on billing models of Azure Files for the names of SKUs.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from disksla.base.units import GIB, MIB
from disksla.clouds.detection.azure import COMPUTE, HEADERS, access_token, api_address
from disksla.clouds.detection.file_storages import each_storage, value_in
from disksla.clouds.detection.findings import CloudDisk, Listing, amount, needed_text
from disksla.clouds.http_client import (
    Exchanges,
    Request,
    authorized,
    decode,
    failure,
    get_by_token,
    get_response,
    items_of,
    pages,
    plain_text,
    whole_number,
)
from disksla.kernel.nfs import FileStorage

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
) -> Exchanges[Listing]:
    """Return the terms of file shares; `endpoint` replaces the address of the API."""
    what = "request for the metadata of the machine"
    request = Request(what, "metadata", "GET", COMPUTE, HEADERS)
    machine = decode(what, (yield from get_response(request)).body, dict)
    address, audience = api_address(endpoint, machine.get("azEnvironment"))
    why = "it has no id of the subscription"
    subscription = needed_text(what, machine.get("subscriptionId"), "[0-9a-f-]", why)
    path = f"/subscriptions/{subscription}"

    def terms(token: str) -> Exchanges[Listing]:
        accounts = yield from _accounts(address, token, path)
        return (yield from each_storage(storages, partial(_terms, address, token, accounts)))

    return (yield from authorized(partial(access_token, audience), terms))


def _accounts(address: str, token: str, path: str) -> Exchanges[Mapping[str, Any]]:
    """Return the storage accounts of the subscription by name."""
    what = "request for the storage accounts"
    denied = (
        "Microsoft.Storage/storageAccounts/read was denied to the managed identity; give it the"
        f" role Reader on {path} or on the storage accounts"
    )
    first = f"{address}{path}/providers/Microsoft.Storage/storageAccounts?{_VERSION}"

    def page(mark: str) -> Exchanges[tuple[list[Any], str]]:
        if not (mark or first).startswith(f"{address}/"):
            raise failure(what, "redirected", "the next page is at another address")
        found = decode(what, (yield from get_by_token(what, mark or first, token, denied)), dict)
        return list(items_of(found.get("value"))), plain_text(found.get("nextLink")) or ""

    items = yield from pages(what, page, _MOST_PAGES)
    return {str(value_in(item, "name")): item for item in items}


def _terms(
    address: str, token: str, accounts: Mapping[str, Any], storage: FileStorage
) -> Exchanges[CloudDisk]:
    what = f"request for the file share {storage.id}"
    name, _, share = (storage.id or "").partition("/")
    account = accounts.get(name)
    path = plain_text(value_in(account, "id"), r"[\w./()-]")
    if path is None:
        why = "the managed identity sees no such storage account in the subscription"
        raise failure(what, "not_found", f"{why}; give it the role Reader on the account")
    denied = (
        "Microsoft.Storage/storageAccounts/fileServices/shares/read was denied to the managed"
        f" identity; give it the role Reader on {path}"
    )
    url = f"{address}{path}/fileServices/default/shares/{share}?{_VERSION}"
    found = decode(what, (yield from get_by_token(what, url, token, denied)), dict)
    return _share_terms(what, account, found.get("properties"))


def _share_terms(what: str, account: Any, found: Any) -> CloudDisk:
    sku = plain_text(value_in(account, "sku", "name"), r"[\w]")
    size_gib = whole_number(value_in(found, "shareQuota"))
    if sku is None or size_gib is None:
        raise failure(what, "not_found", "it has no SKU or no quota")
    row = _ROWS.get(sku.partition("_")[0], f"files-{sku}")
    is_v2 = row.endswith("-v2")
    rate = amount(value_in(found, "provisionedBandwidthMibps"), MIB) if is_v2 else None
    iops = whole_number(value_in(found, "provisionedIops")) if is_v2 else None
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
