"""The machine type at providers whose API is not used: Alibaba Cloud and Oracle Cloud.

Types of disks are not in their metadata. Sources: Alibaba Cloud's page on instance metadata;
Oracle's page on getting instance metadata.
"""

from disksla.clouds.detection.findings import Detected, Metadata, detect, needed_text, text_in
from disksla.clouds.http_client import LINK_LOCAL, Exchanges, Request, decode, get_response

_ALIBABA = "http://100.100.100.200/latest"
_ORACLE = f"http://{LINK_LOCAL}/opc/v2/instance/"
_NAME = "[A-Za-z0-9._-]"
_OTHER_CLOUD = "the answer is not that of this provider"


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
    token = text_in(what, (yield from get_response(request)).body, "[!-~]", _OTHER_CLOUD)
    what = "request for the machine type"
    headers = {"x-aliyun-ecs-metadata-token": token}
    url = f"{_ALIBABA}/meta-data/instance/instance-type"
    response = yield from get_response(Request(what, "metadata", "GET", url, headers))
    return Metadata(None, text_in(what, response.body, _NAME, _OTHER_CLOUD))


def _oracle() -> Exchanges[Metadata[None]]:
    what = "request for the machine type"
    headers = {"authorization": "Bearer Oracle"}
    response = yield from get_response(Request(what, "metadata", "GET", _ORACLE, headers))
    shape = decode(what, response.body, dict).get("shape")
    return Metadata(None, needed_text(what, shape, _NAME, _OTHER_CLOUD))
