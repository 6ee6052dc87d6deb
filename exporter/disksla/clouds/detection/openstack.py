"""OpenStack and clouds built on it: which volumes are attached to this server, by Cinder.

The metadata service has the id of the server, but no type of any volume. The API is used with an
application credential. Sources: the Nova, Keystone (v3) and Cinder (v3) API references.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from disksla.base.errors import ExchangeReason
from disksla.base.units import GIB
from disksla.clouds import http_client as http
from disksla.clouds.detection import findings
from disksla.clouds.detection.findings import CloudDisk, Detected, Listing, Metadata

SERVICES: Mapping[str, str] = {
    "openstack": "OpenStack",
    "vk": "VK Cloud",
    "ovh": "OVHcloud",
    "huawei": "Huawei Cloud",
}
"""Providers in the catalogue with this API, with their names."""
_OF_IDENTITY_SERVICE: Mapping[str, str] = {
    ".mail.ru": "vk",
    ".cloud.vk.com": "vk",
    ".ovh.net": "ovh",
    ".ovh.us": "ovh",
    ".myhuaweicloud.com": "huawei",
    ".myhuaweicloud.eu": "huawei",
    ".otc.t-systems.com": "huawei",
}
"""Providers by the domain of their identity service. In DMI, they are all OpenStack."""
_SERVER = f"http://{http.LINK_LOCAL}/openstack/latest/meta_data.json"
_BLOCK_STORAGE = ("block-storage", "volumev3")
"""Names of Cinder in the catalogue of services, the present one first."""
_UUID = "[0-9A-Fa-f-]"
_MOST_PAGES = 1000
_PAGE = "1000"
_NO_FILE = (
    "there is no valid application credential; pass a clouds.yaml with one by --credentials, or by"
    " LoadCredential= of systemd"
)
_VOLUMES = "listing of volumes"


class OpenstackCredentials(msgspec.Struct, frozen=True):
    """An application credential, and which of the cloud's endpoints to use."""

    auth_url: str
    id: str
    secret: str
    region: str | None = None
    interface: str = "public"

    def __repr__(self) -> str:
        """Return a text without secrets."""
        return f"OpenstackCredentials({self.auth_url!r})"


class _Session(msgspec.Struct, frozen=True):
    token: str
    endpoint: str

    def __repr__(self) -> str:
        """Return a text without the token."""
        return f"_Session({self.endpoint!r})"


class _Page(msgspec.Struct, frozen=True):
    volumes: list[Any]
    volumes_links: Any = None


def detect_openstack(
    provider: str, credentials: OpenstackCredentials | None, endpoint: str | None
) -> http.Exchanges[Detected]:
    """Return the volumes of this server; `endpoint` replaces the address of Cinder."""
    if provider == "openstack" and credentials is not None:
        provider = _provider_of(credentials.auth_url)
    api = partial(_api, credentials, endpoint)
    return findings.detect(provider, SERVICES[provider], _metadata(), api)


def _provider_of(auth_url: str) -> str:
    host = auth_url.partition("://")[2].partition("/")[0].partition(":")[0]
    found = (name for end, name in _OF_IDENTITY_SERVICE.items() if host.endswith(end))
    return next(found, "openstack")


def _metadata() -> http.Exchanges[Metadata[str]]:
    what = "request for the id of the server"
    response = yield from http.get_response(http.Request(what, "metadata", "GET", _SERVER))
    server_id = http.decode(what, response.body, dict).get("uuid")
    return Metadata(findings.needed_text(what, server_id, _UUID, "it is not a UUID"))


def _api(
    credentials: OpenstackCredentials | None, endpoint: str | None, server_id: str
) -> http.Exchanges[Listing]:
    if credentials is None:
        raise http.failure(_VOLUMES, "no_credentials", _NO_FILE)

    def volumes(session: _Session) -> http.Exchanges[list[Any]]:
        return http.pages(_VOLUMES, partial(_page, session), _MOST_PAGES)

    found = yield from http.authorized(partial(_session, credentials, endpoint), volumes)
    return (
        yield from findings.each_disk(
            (item for item in found if _may_be_at(server_id, item)), _disk
        )
    )


def _may_be_at(server_id: str, item: Any) -> bool:
    """Return whether a volume is attached to a server; also if the answer does not show it."""
    attachments = item.get("attachments") if isinstance(item, dict) else None
    ids = (each.get("server_id") for each in _mappings(attachments))
    return not isinstance(attachments, list) or server_id in ids


def _session(credentials: OpenstackCredentials, endpoint: str | None) -> http.Exchanges[_Session]:
    """Return a token, and the address of Cinder from the catalogue of services."""
    what = "request for a token of Keystone"
    identity = {
        "methods": ["application_credential"],
        "application_credential": {"id": credentials.id, "secret": credentials.secret},
    }
    request = http.Request(
        what=what,
        source="api",
        method="POST",
        url=f"{identity_url(credentials.auth_url)}/auth/tokens",
        headers={"content-type": "application/json"},
        body=msgspec.json.encode({"auth": {"identity": identity}}),
    )
    response = yield from http.get_response(request, classify=_classify_token)
    token = http.plain_token(response.headers.get("x-subject-token", ""))
    if token is None:
        raise http.failure(what, "invalid", "the answer has no token")
    catalog = findings.part_of(what, http.decode(what, response.body, dict), "token").get(
        "catalog"
    )
    return _Session(token, endpoint or _block_storage(what, credentials, catalog))


def identity_url(auth_url: str) -> str:
    """Return the address of version 3 of Keystone; `auth_url` may lack the version."""
    url = auth_url.rstrip("/")
    return url if url.endswith("/v3") else f"{url}/v3"


def _classify_token(response: http.Response) -> tuple[ExchangeReason, str] | None:
    """Return why Keystone gave no token: 404 for an unknown credential, 401 for a wrong secret."""
    if response.status == 404:  # noqa: PLR2004 -- Not Found
        return "not_found", (
            "there is no such application credential, or auth_url is not that of Keystone; see"
            " that both are right"
        )
    if response.status == 401:  # noqa: PLR2004 -- Unauthorized
        return "denied", (
            "Keystone rejected the application credential; see that it has not expired"
        )
    return None


def _block_storage(what: str, credentials: OpenstackCredentials, catalog: Any) -> str:
    """Return the address of Cinder. Raise ExchangeError if there is none, or an unsafe one."""
    urls: list[str] = [
        endpoint["url"]
        for name in _BLOCK_STORAGE
        for service in _mappings(catalog)
        if service.get("type") == name
        for endpoint in _mappings(service.get("endpoints"))
        if endpoint.get("interface") == credentials.interface
        and credentials.region in (None, endpoint.get("region_id"), endpoint.get("region"))
        and isinstance(endpoint.get("url"), str)
    ]
    if not urls:
        where = f"in region {credentials.region}" if credentials.region else "in any region"
        why = f"the catalogue has no {credentials.interface} endpoint of Cinder {where}"
        raise http.failure(what, "not_found", why)
    scheme = "https://" if credentials.auth_url.startswith("https://") else "http"
    if not urls[0].startswith(scheme) or http.plain_token(urls[0]) is None:
        raise http.failure(
            what, "invalid", "Keystone uses TLS, and its catalogue has Cinder without"
        )
    return urls[0].rstrip("/")


def _mappings(part: Any) -> list[dict[str, Any]]:
    """Return those items of a list that are mappings."""
    return [item for item in http.items_of(part) if isinstance(item, dict)]


def _page(session: _Session, mark: str) -> http.Exchanges[tuple[list[Any], str]]:
    """Return the volumes of one page, and the id after which the next begins."""
    values = [("limit", _PAGE), *([("marker", mark)] if mark else [])]
    words: http.Explanations = {
        "denied": (
            "volume:get_all was denied to the application credential; create it with the role"
            " reader on the project"
        )
    }
    request = http.Request(
        _VOLUMES,
        "api",
        "GET",
        f"{session.endpoint}/volumes/detail?{http.query_string(values)}",
        {"x-auth-token": session.token, "accept": "application/json"},
    )
    response = yield from http.get_response(request, words)
    page = http.decode(_VOLUMES, response.body, _Page)
    has_more = any(link.get("rel") == "next" for link in _mappings(page.volumes_links))
    if not (has_more and page.volumes):
        return page.volumes, ""
    last_id = http.convert(_VOLUMES, page.volumes[-1], dict).get("id")
    why = "the last volume of a page has no id"
    return page.volumes, findings.needed_text(_VOLUMES, last_id, _UUID, why)


def _disk(item: Any) -> http.Exchanges[CloudDisk]:
    yield from ()  # the listing has everything
    volume = http.convert(_VOLUMES, item, dict)
    volume_id = findings.needed_text(_VOLUMES, volume.get("id"), _UUID, "a volume has no id")
    if not isinstance(volume.get("attachments"), list):
        raise http.failure(_VOLUMES, "invalid", f"volume {volume_id} has no attachments")
    api_type = http.plain_text(volume.get("volume_type"), ".")
    if api_type is None:
        raise http.failure(_VOLUMES, "not_found", f"volume {volume_id} has no type")
    return CloudDisk(volume_id, api_type, size_bytes=findings.amount(volume.get("size"), GIB))
