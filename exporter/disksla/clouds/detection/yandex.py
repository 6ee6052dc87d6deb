"""Yandex Cloud: which disks this instance has, by the Compute Cloud API.

The metadata service has the id of the instance; it calls every disk PERSISTENT. The API has the
types, with the service account of the instance. Sources: the pages on metadata of a VM, and the
reference of the Compute Cloud API (Instance.Get, Disk.Get).
"""

from functools import partial
from typing import Any

from disksla.clouds.detection.findings import (
    CloudDisk,
    Detected,
    Listing,
    Metadata,
    amount,
    detect,
    each_disk,
    needed_text,
    text_in,
)
from disksla.clouds.detection.google import access_token, get_metadata
from disksla.clouds.http_client import (
    Exchanges,
    authorized,
    convert,
    decode,
    get_by_token,
    items_of,
    plain_text,
)

ENDPOINT = "https://compute.api.cloud.yandex.net"
_NAME = "[A-Za-z0-9._-]"
NO_ACCOUNT = (
    "this instance has no service account; give it one with the role compute.viewer on its folder"
)


def detect_yandex(endpoint: str | None) -> Exchanges[Detected]:
    """Return the disks of this instance; `endpoint` replaces the address of the API."""
    service = "Yandex Compute Cloud"
    return detect("yandex", service, id_of_instance(), partial(_api, endpoint or ENDPOINT))


def id_of_instance() -> Exchanges[Metadata[str]]:
    """Return the id of this instance."""
    what = "request for the id of the instance"
    body = yield from get_metadata(what, "instance/id")
    return Metadata(text_in(what, body, _NAME, "it is not an id"))


def _api(endpoint: str, instance_id: str) -> Exchanges[Listing]:
    def disks(token: str) -> Exchanges[Listing]:
        what = "request for the instance"
        body = yield from get_of_api(endpoint, token, what, f"instances/{instance_id}")
        instance = decode(what, body, dict)
        attached = (instance.get("bootDisk"), *items_of(instance.get("secondaryDisks")))
        return (yield from each_disk(attached, partial(_disk, endpoint, token)))

    return (yield from authorized(partial(access_token, NO_ACCOUNT), disks))


def _disk(endpoint: str, token: str, item: Any) -> Exchanges[CloudDisk]:
    what, why = "request for the disks of the instance", "a disk of the instance has no id"
    attached = convert(what, item, dict)
    disk_id = needed_text(what, attached.get("diskId"), _NAME, why)
    what = f"request for disk {disk_id}"
    body = yield from get_of_api(endpoint, token, what, f"disks/{disk_id}")
    found = decode(what, body, dict)
    api_type = needed_text(what, found.get("typeId"), _NAME, "it has no type")
    volume = plain_text(attached.get("deviceName"), _NAME) or disk_id
    return CloudDisk(volume, api_type, size_bytes=amount(found.get("size")))


def get_of_api(endpoint: str, token: str, what: str, path: str) -> Exchanges[bytes]:
    """Return what the API has at a path."""
    denied = (
        "permission was denied to the service account; give it the role compute.viewer on the"
        " folder of the instance"
    )
    return get_by_token(what, f"{endpoint}/compute/v1/{path}", token, denied)
