"""Yandex Cloud: which disks this instance has, and what its file storages are.

The metadata service has the id of the instance; it calls every disk PERSISTENT. The API has the
types, with the service account of the instance. A file storage is mounted by its id, or by a name
that the instance knows. Sources: the pages on metadata of a VM, and the reference of the Compute
Cloud API (Instance.Get, Disk.Get, Filesystem.Get).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from disksla.clouds import http_client as http
from disksla.clouds.detection import findings
from disksla.clouds.detection.file_storages import each_storage, value_in
from disksla.clouds.detection.findings import CloudDisk, Detected, Listing, Metadata
from disksla.clouds.detection.google import access_token, get_metadata
from disksla.kernel.nfs import FileStorage

_ENDPOINT = "https://compute.api.cloud.yandex.net"
_NAME = "[A-Za-z0-9._-]"
_NO_ACCOUNT = (
    "this instance has no service account; give it one with the role compute.viewer on its folder"
)


def detect_yandex(endpoint: str | None) -> http.Exchanges[Detected]:
    """Return the disks of this instance; `endpoint` replaces the address of the API."""
    service = "Yandex Compute Cloud"
    return findings.detect(
        "yandex", service, _id_of_instance(), partial(_api, endpoint or _ENDPOINT)
    )


def _id_of_instance() -> http.Exchanges[Metadata[str]]:
    """Return the id of this instance."""
    what = "request for the id of the instance"
    body = yield from get_metadata(what, "instance/id")
    return Metadata(findings.text_in(what, body, _NAME, "it is not an id"))


def _api(endpoint: str, instance_id: str) -> http.Exchanges[Listing]:
    def disks(token: str) -> http.Exchanges[Listing]:
        what = "request for the instance"
        body = yield from _get_of_api(endpoint, token, what, f"instances/{instance_id}")
        instance = http.decode(what, body, dict)
        attached = (instance.get("bootDisk"), *http.items_of(instance.get("secondaryDisks")))
        return (yield from findings.each_disk(attached, partial(_disk, endpoint, token)))

    return (yield from http.authorized(partial(access_token, _NO_ACCOUNT), disks))


def _disk(endpoint: str, token: str, item: Any) -> http.Exchanges[CloudDisk]:
    what, why = "request for the disks of the instance", "a disk of the instance has no id"
    attached = http.convert(what, item, dict)
    disk_id = findings.needed_text(what, attached.get("diskId"), _NAME, why)
    what = f"request for disk {disk_id}"
    body = yield from _get_of_api(endpoint, token, what, f"disks/{disk_id}")
    found = http.decode(what, body, dict)
    api_type = findings.needed_text(what, found.get("typeId"), _NAME, "it has no type")
    volume = http.plain_text(attached.get("deviceName"), _NAME) or disk_id
    return CloudDisk(volume, api_type, size_bytes=findings.amount(found.get("size")))


def _get_of_api(endpoint: str, token: str, what: str, path: str) -> http.Exchanges[bytes]:
    """Return what the API has at a path."""
    denied = (
        "permission was denied to the service account; give it the role compute.viewer on the"
        " folder of the instance"
    )
    return http.get_by_token(what, f"{endpoint}/compute/v1/{path}", token, denied)


def storages_of_yandex(
    endpoint: str | None, storages: tuple[FileStorage, ...]
) -> http.Exchanges[Listing]:
    """Return the types and sizes of file storages; `endpoint` replaces the address of the API."""
    address = endpoint or _ENDPOINT
    machine = (yield from _id_of_instance()).machine

    def terms(token: str) -> http.Exchanges[Listing]:
        what = "request for the instance"
        body = yield from _get_of_api(address, token, what, f"instances/{machine}")
        attached = http.items_of(http.decode(what, body, dict).get("filesystems"))
        ids = {
            value_in(each, "deviceName"): value_in(each, "filesystemId")
            for each in attached
            if isinstance(value_in(each, "deviceName"), str)
        }
        return (yield from each_storage(storages, partial(_file_storage, address, token, ids)))

    return (yield from http.authorized(partial(access_token, _NO_ACCOUNT), terms))


def _file_storage(
    address: str, token: str, ids: Mapping[str, Any], storage: FileStorage
) -> http.Exchanges[CloudDisk]:
    what = f"request for file storage {storage.id}"
    tag = ids.get(storage.id or "", storage.id)
    storage_id = findings.needed_text(what, tag, "[A-Za-z0-9._-]", "its tag is no id")
    body = yield from _get_of_api(address, token, what, f"filesystems/{storage_id}")
    found = http.decode(what, body, dict)
    kind = findings.needed_text(what, found.get("typeId"), "[a-z0-9-]", "it has no type")
    row = kind.replace("network-", "filestore-")
    return CloudDisk("", row, size_bytes=http.whole_number(found.get("size")))
