"""Google Cloud and Yandex Cloud: what the file storages are that are mounted.

Filestore is mounted by an address, so its instances are listed, and the one that has the address
and the share is it. A file storage of Yandex Cloud is mounted by its id or by a name that the
instance knows. Sources: the references of the Filestore API (instances.list) and of the Compute
Cloud API (Instance.Get, Filesystem.Get).
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from disksla.base.units import GIB
from disksla.clouds.detection.file_storages import each_storage, value_in
from disksla.clouds.detection.findings import CloudDisk, Listing, needed_text, text_in
from disksla.clouds.detection.google import access_token, get_metadata
from disksla.clouds.detection.yandex import ENDPOINT, NO_ACCOUNT, get_of_api, id_of_instance
from disksla.clouds.http_client import (
    Exchanges,
    authorized,
    decode,
    failure,
    get_by_token,
    items_of,
    pages,
    plain_text,
    query_string,
    whole_number,
)
from disksla.kernel.nfs import FileStorage

_FILE = "https://file.googleapis.com"
_ADDRESS = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){3}):/([A-Za-z0-9_]+)(?:/.*)?")
_MOST_PAGES = 20
_TIERS = {"STANDARD": "basic-hdd", "PREMIUM": "basic-ssd", "HIGH_SCALE_SSD": "zonal"}
"""Older names of tiers."""
_WITH_PERFORMANCE = {"zonal", "regional"}
_DENIED = (
    "file.instances.list was denied to the service account; give it the role roles/file.viewer,"
    " and the instance the scope cloud-platform, if it mounts Filestore"
)
_NO_ACCOUNT = (
    "this instance has no service account; give it one with the role roles/file.viewer and the"
    " scope cloud-platform"
)


def storages_of_google(
    endpoints: Mapping[str, str], storages: tuple[FileStorage, ...]
) -> Exchanges[Listing]:
    """Return the terms of Filestore; `endpoints` replaces the address of `file`.

    Other NFS servers are mounted in the same way; they are left out.
    """
    mounted = [each for each in storages if _ADDRESS.fullmatch(each.source)]
    if not mounted:
        return Listing(())
    what = "request for the project of the instance"
    body = yield from get_metadata(what, "project/project-id")
    project = text_in(what, body, "[a-z0-9.:-]", "it is not an id")
    url = f"{endpoints.get('file') or _FILE}/v1/projects/{project}/locations/-/instances"

    def terms(token: str) -> Exchanges[Listing]:
        instances = yield from _instances(url, token)
        named = {key: each for each in instances for key in _keys(each)}
        known = [each for each in mounted if _key(each.source) in named]
        return (yield from each_storage(known, partial(_filestore, named)))

    return (yield from authorized(partial(access_token, _NO_ACCOUNT), terms))


def _instances(url: str, token: str) -> Exchanges[list[Any]]:
    """Return the instances of the project in all places."""
    what = "instances.list of Filestore"

    def page(mark: str) -> Exchanges[tuple[list[Any], str]]:
        query = query_string((("pageToken", mark),)) if mark else ""
        address = f"{url}?{query}" if mark else url
        found = decode(what, (yield from get_by_token(what, address, token, _DENIED)), dict)
        mark = plain_text(found.get("nextPageToken")) or ""
        return list(items_of(found.get("instances"))), mark

    return (yield from pages(what, page, _MOST_PAGES))


def _key(source: str) -> str:
    """Return the address and the share of what is mounted."""
    named = _ADDRESS.fullmatch(source)
    return f"{named[1]}:/{named[2]}" if named is not None else ""


def _keys(instance: Any) -> list[str]:
    """Return how the shares of an instance are mounted."""
    networks, shares = value_in(instance, "networks"), value_in(instance, "fileShares")
    return [
        f"{address}:/{value_in(share, 'name')}"
        for network in items_of(networks)
        for address in items_of(value_in(network, "ipAddresses"))
        for share in items_of(shares)
    ]


def _filestore(named: Mapping[str, Any], storage: FileStorage) -> Exchanges[CloudDisk]:
    yield from ()  # the list has everything
    what, found = f"Filestore {storage.source}", named[_key(storage.source)]
    tier = plain_text(value_in(found, "tier"), "[A-Z_]")
    shares = items_of(value_in(found, "fileShares"))
    sizes_gib = [whole_number(value_in(each, "capacityGb")) for each in shares]
    if tier is None or None in sizes_gib:
        raise failure(what, "not_found", "it has no tier or no capacity")
    options = {"tier": _TIERS.get(tier, tier.lower().replace("_", "-"))}
    iops = None
    if value_in(found, "performanceConfig") is not None and options["tier"] in _WITH_PERFORMANCE:
        options["performance"] = "custom"
        iops = whole_number(value_in(found, "performanceLimits", "maxReadIops"))
    size_bytes = sum(filter(None, sizes_gib)) * GIB
    return CloudDisk("", "filestore", size_bytes=size_bytes, iops=iops, options=options)


def storages_of_yandex(
    endpoint: str | None, storages: tuple[FileStorage, ...]
) -> Exchanges[Listing]:
    """Return the types and sizes of file storages; `endpoint` replaces the address of the API."""
    address = endpoint or ENDPOINT
    machine = (yield from id_of_instance()).machine

    def terms(token: str) -> Exchanges[Listing]:
        what = "request for the instance"
        body = yield from get_of_api(address, token, what, f"instances/{machine}")
        attached = items_of(decode(what, body, dict).get("filesystems"))
        ids = {
            value_in(each, "deviceName"): value_in(each, "filesystemId")
            for each in attached
            if isinstance(value_in(each, "deviceName"), str)
        }
        return (yield from each_storage(storages, partial(_yandex, address, token, ids)))

    return (yield from authorized(partial(access_token, NO_ACCOUNT), terms))


def _yandex(
    address: str, token: str, ids: Mapping[str, Any], storage: FileStorage
) -> Exchanges[CloudDisk]:
    what = f"request for file storage {storage.id}"
    tag = ids.get(storage.id or "", storage.id)
    storage_id = needed_text(what, tag, "[A-Za-z0-9._-]", "its tag is no id")
    body = yield from get_of_api(address, token, what, f"filesystems/{storage_id}")
    found = decode(what, body, dict)
    kind = needed_text(what, found.get("typeId"), "[a-z0-9-]", "it has no type")
    row = kind.replace("network-", "filestore-")
    return CloudDisk("", row, size_bytes=whole_number(found.get("size")))
