"""The machine type at providers whose API is not used: Alibaba Cloud and Oracle Cloud.

Types of disks are not in their metadata. Sources: Alibaba Cloud's page on instance metadata;
Oracle's page on getting instance metadata.
"""

import msgspec

from disksla.detection.findings import Detected, Metadata, detect
from disksla.exchange import (
    LINK_LOCAL,
    Exchanges,
    Request,
    decode,
    failure,
    get_response,
    plain_text,
)

_ALIBABA = "http://100.100.100.200/latest"
_ORACLE = f"http://{LINK_LOCAL}/opc/v2/instance/"
_NAME = "[A-Za-z0-9._-]"


class _Shape(msgspec.Struct, frozen=True):
    shape: str


def detect_alibaba() -> Exchanges[Detected]:
    """Return the machine type of an instance of Alibaba Cloud."""
    return detect("alibaba", "Alibaba Cloud", _alibaba())


def detect_oracle() -> Exchanges[Detected]:
    """Return the shape of an instance of Oracle Cloud."""
    return detect("oracle", "Oracle Cloud", _oracle())


def _alibaba() -> Exchanges[Metadata[None]]:
    what = "request for a metadata token"
    headers = {"x-aliyun-ecs-metadata-token-ttl-seconds": "60"}
    request = Request(what, "metadata", "PUT", f"{_ALIBABA}/api/token", headers)
    token = _text(what, (yield from get_response(request)).body, "[!-~]")
    what = "request for the machine type"
    headers = {"x-aliyun-ecs-metadata-token": token}
    url = f"{_ALIBABA}/meta-data/instance/instance-type"
    response = yield from get_response(Request(what, "metadata", "GET", url, headers))
    return Metadata(None, _text(what, response.body, _NAME))


def _oracle() -> Exchanges[Metadata[None]]:
    what = "request for the machine type"
    headers = {"authorization": "Bearer Oracle"}
    response = yield from get_response(Request(what, "metadata", "GET", _ORACLE, headers))
    shape = decode(what, response.body, _Shape).shape
    return Metadata(None, _text(what, shape.encode(), _NAME))


def _text(what: str, body: bytes, characters: str) -> str:
    text = plain_text(body.decode("ascii", "replace").strip(), characters)
    if text is None:
        raise failure(what, "invalid", "the answer is not that of this provider")
    return text
