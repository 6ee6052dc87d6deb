"""The providers that can be asked, by their ids in the catalogue, and what each asks for."""

import datetime as dt
from collections.abc import Callable, Mapping
from functools import partial

from disksla.clouds.detection import findings
from disksla.clouds.detection.aws import detect_aws
from disksla.clouds.detection.aws_storages import storages_of_aws
from disksla.clouds.detection.azure import detect_azure, storages_of_azure
from disksla.clouds.detection.file_storages import with_file_storages
from disksla.clouds.detection.findings import Detected, Listing, Metadata
from disksla.clouds.detection.google import detect_google, storages_of_google
from disksla.clouds.detection.openstack import SERVICES, OpenstackCredentials, detect_openstack
from disksla.clouds.detection.yandex import detect_yandex, storages_of_yandex
from disksla.clouds.http_client import LINK_LOCAL, Exchanges, Request, decode, get_response
from disksla.kernel.nfs import FileStorage

_ALIBABA = "http://100.100.100.200/latest"
_ORACLE = f"http://{LINK_LOCAL}/opc/v2/instance/"
_NAME = "[A-Za-z0-9._-]"
_OTHER_CLOUD = "the answer is not that of this provider"


def _alibaba() -> Exchanges[Metadata[None]]:
    what = "request for a metadata token"
    headers = {"x-aliyun-ecs-metadata-token-ttl-seconds": "60"}
    request = Request(what, "metadata", "PUT", f"{_ALIBABA}/api/token", headers)
    token = findings.text_in(what, (yield from get_response(request)).body, "[!-~]", _OTHER_CLOUD)
    what = "request for the machine type"
    headers = {"x-aliyun-ecs-metadata-token": token}
    url = f"{_ALIBABA}/meta-data/instance/instance-type"
    response = yield from get_response(Request(what, "metadata", "GET", url, headers))
    return Metadata(None, findings.text_in(what, response.body, _NAME, _OTHER_CLOUD))


def _oracle() -> Exchanges[Metadata[None]]:
    what = "request for the machine type"
    headers = {"authorization": "Bearer Oracle"}
    response = yield from get_response(Request(what, "metadata", "GET", _ORACLE, headers))
    shape = decode(what, response.body, dict).get("shape")
    return Metadata(None, findings.needed_text(what, shape, _NAME, _OTHER_CLOUD))


WITH_CREDENTIALS_FILE = tuple(SERVICES)
"""Providers whose API needs a credential that the machine does not have by itself."""
PROVIDERS = ("alibaba", "aws", "azure", "gcp", *sorted(SERVICES), "oracle", "yandex")


def exchanges_of(
    provider: str,
    *,
    now: dt.datetime,
    endpoints: Mapping[str, str] | None = None,
    credentials: OpenstackCredentials | None = None,
    storages: tuple[FileStorage, ...] = (),
) -> Exchanges[Detected]:
    """Return what is to be asked of a provider in PROVIDERS, as exchanges that were not begun.

    `endpoints` replaces public addresses of its APIs; that of disks has no name. `storages` are
    those that are mounted, whosever they are.
    """
    endpoints = endpoints or {}
    endpoint = endpoints.get("")
    detectors: dict[str, Callable[[], Exchanges[Detected]]] = {
        "alibaba": partial(findings.detect, "alibaba", "Alibaba Cloud", _alibaba()),
        "aws": partial(detect_aws, endpoint, now),
        "azure": partial(detect_azure, endpoint),
        "gcp": partial(detect_google, endpoint),
        "oracle": partial(findings.detect, "oracle", "Oracle Cloud", _oracle()),
        "yandex": partial(detect_yandex, endpoint),
        **{name: partial(detect_openstack, name, credentials, endpoint) for name in SERVICES},
    }
    askers: dict[str, Callable[[tuple[FileStorage, ...]], Exchanges[Listing]]] = {
        "aws": partial(storages_of_aws, endpoints, now),
        "azure": partial(storages_of_azure, endpoint),
        "gcp": partial(storages_of_google, endpoints),
        "yandex": partial(storages_of_yandex, endpoint),
    }
    own = tuple(
        each
        for each in storages
        if (each.provider == provider and each.id is not None)
        # An NFS server at an address may be Filestore.
        or (each.provider is None and provider == "gcp")
    )
    if provider not in askers or not own:
        return detectors[provider]()
    return with_file_storages(detectors[provider](), own, askers[provider])
