"""AWS: which volumes are attached to this instance, by the EC2 API and the role of the instance.

The metadata service (IMDSv2) has the instance, its type and the credentials of its role. It has no
type of any volume. Sources: the EC2 user guide (instance metadata), the EC2 API reference
(DescribeVolumes, error codes); Signature Version 4 at
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
"""

import datetime as dt
import hashlib
import hmac
from collections.abc import Callable
from functools import partial
from xml.etree import ElementTree as ET

import msgspec

from disksla.base.errors import ExchangeReason
from disksla.base.units import GIB, MIB
from disksla.clouds import http_client as http
from disksla.clouds.detection import findings
from disksla.clouds.detection.findings import CloudDisk, Detected, Listing, Metadata

_ALGORITHM = "AWS4-HMAC-SHA256"


class AwsCredentials(msgspec.Struct, frozen=True):
    """Temporary credentials of the role of an instance."""

    key_id: str
    secret: str
    token: str = ""  # session token; empty for the key of a user

    def __repr__(self) -> str:
        """Return a text without secrets."""
        return "AwsCredentials(...)"


def signed(
    request: http.Request, credentials: AwsCredentials, scope: str, now: dt.datetime
) -> http.Request:
    """Return a request with its signature, which holds for a scope `REGION/SERVICE`.

    Path and query of the URL must be encoded already, the query sorted by name; names of headers
    are in lower case.
    """
    host, _, target = request.url.partition("://")[2].partition("/")
    path, _, query = target.partition("?")
    stamp = now.astimezone(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {**request.headers, "host": host, "x-amz-date": stamp}
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers))
    canonical = "\n".join((request.method, f"/{path}", query, lines, names, _sha256(request.body)))
    place = f"{stamp[:8]}/{scope}/aws4_request"
    to_sign = "\n".join((_ALGORITHM, stamp, place, _sha256(canonical.encode())))
    key = f"AWS4{credentials.secret}".encode()
    for part in place.split("/"):
        key = _hmac(key, part)
    headers["authorization"] = (
        f"{_ALGORITHM} Credential={credentials.key_id}/{place}, SignedHeaders={names},"
        f" Signature={_hmac(key, to_sign).hex()}"
    )
    return msgspec.structs.replace(request, headers=headers)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


_METADATA = f"http://{http.LINK_LOCAL}/latest"
_TOKEN_SECONDS = "60"  # noqa: S105 -- a duration
_OUT_OF_REACH = (
    "the metadata service did not answer; in a container or a pod, raise the hop limit of the"
    " instance (HttpPutResponseHopLimit) or use the network of the host"
)
_OTHER_CLOUD = "the answer is not that of EC2; see that the provider is right"
_ABOUT_METADATA: http.Explanations = {
    "timeout": _OUT_OF_REACH,
    "unreachable": _OUT_OF_REACH,
    "denied": "the metadata service is disabled for this instance; enable it (HttpEndpoint)",
    "not_found": _OTHER_CLOUD,
    "invalid": _OTHER_CLOUD,
}
_NO_ROLE: http.Explanations = {
    "not_found": (
        "this instance has no role; give it an instance profile that permits ec2:DescribeVolumes"
    )
}
_DOMAINS = {
    "cn-": "amazonaws.com.cn",
    "eusc-": "amazonaws.eu",
    "us-iso-": "c2s.ic.gov",
    "us-isob-": "sc2s.sgov.gov",
    "us-isof-": "csp.hci.ic.gov",
    "eu-isoe-": "cloud.adc-e.uk",
}
"""Domains of the partitions that are not in amazonaws.com, by the start of their regions. GovCloud
is in it. Source: partitions.json of botocore."""
_ACTION = "DescribeVolumes"
_MOST_PAGES = 20
_PAGE = "500"
PROVISIONED: dict[str, tuple[str, ...]] = {
    "gp3": ("iops", "throughput"),
    "io1": ("iops",),
    "io2": ("iops",),
}
"""What the customer chooses, by type. For others, EC2 returns what follows from the size."""
_UNITS = {"iops": 1, "throughput": MIB}
_DENIED = {"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}
_THROTTLED = {"RequestLimitExceeded", "Throttling", "ThrottlingException"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
_REJECTED = {
    "AuthFailure",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
"""Error codes of the API."""


class _Instance(msgspec.Struct, frozen=True):
    id: str
    region: str
    token: str


class _RoleCredentials(msgspec.Struct, frozen=True):
    AccessKeyId: str
    SecretAccessKey: str
    Token: str


class Role(msgspec.Struct, frozen=True):
    """The role of the instance."""

    name: str
    credentials: AwsCredentials


def detect_aws(endpoint: str | None, now: dt.datetime) -> http.Exchanges[Detected]:
    """Return the volumes of this instance; `endpoint` replaces the address of the API."""
    return findings.detect("aws", "EC2", _metadata(), partial(_api, endpoint, now))


def _metadata() -> http.Exchanges[Metadata[_Instance]]:
    token = yield from metadata_token()
    instance_id = yield from _value(token, "instance-id")
    region = yield from region_of(token)
    instance = _Instance(instance_id, region, token)
    try:
        return Metadata(instance, (yield from _value(token, "instance-type", "[a-z0-9.-]")))
    except http.ExchangeError as error:
        if error.reason not in findings.OF_ONE_DISK:
            raise
        return Metadata(instance, problems=(findings.problem("metadata", error),))


def metadata_token() -> http.Exchanges[str]:
    """Return a token of the metadata service."""
    what = "request for a metadata token"
    ttl = {"x-aws-ec2-metadata-token-ttl-seconds": _TOKEN_SECONDS}
    request = http.Request(what, "metadata", "PUT", f"{_METADATA}/api/token", ttl)
    response = yield from http.get_response(request, _ABOUT_METADATA)
    return findings.text_in(what, response.body, "[!-~]", _OTHER_CLOUD)


def region_of(token: str) -> http.Exchanges[str]:
    """Return the region of the instance."""
    return (yield from _value(token, "placement/region"))


def _value(token: str, path: str, characters: str = "[a-z0-9-]") -> http.Exchanges[str]:
    what = f"request for {path}"
    response = yield from http.get_response(_get(path, token, what), _ABOUT_METADATA)
    return findings.text_in(what, response.body, characters, _OTHER_CLOUD)


def _api(endpoint: str | None, now: dt.datetime, instance: _Instance) -> http.Exchanges[Listing]:
    url = f"{endpoint or public_endpoint('ec2', instance.region)}/"

    def volumes(role: Role) -> http.Exchanges[list[ET.Element]]:
        return http.pages(_ACTION, partial(_page, url, now, instance, role), _MOST_PAGES)

    items = yield from http.authorized(partial(role_of, instance.token), volumes)
    attached = [item for item in items if _is_attached(item, instance.id)]
    return (yield from findings.each_disk(attached, _disk))


def public_endpoint(service: str, region: str) -> str:
    """Return the address of an API, by the first word of its host."""
    domains = (name for start, name in _DOMAINS.items() if region.startswith(start))
    return f"https://{service}.{region}.{next(domains, 'amazonaws.com')}"


def role_of(token: str) -> http.Exchanges[Role]:
    """Return the role of the instance, with its credentials."""
    what, path = "request for the role of the instance", "iam/security-credentials/"
    response = yield from http.get_response(_get(path, token, what), _NO_ROLE)
    name = findings.text_in(what, response.body, r"[\w+=,.@-]", _OTHER_CLOUD)
    what = "request for the credentials of the role"
    response = yield from http.get_response(_get(path + name, token, what), _NO_ROLE)
    found = http.decode(what, response.body, _RoleCredentials)
    secrets = (found.AccessKeyId, found.SecretAccessKey, found.Token)
    if not all(secret and secret.isascii() and secret.isprintable() for secret in secrets):
        raise http.failure(what, "invalid", _OTHER_CLOUD)
    return Role(name, AwsCredentials(*secrets))


def _get(path: str, token: str, what: str) -> http.Request:
    headers = {"x-aws-ec2-metadata-token": token}
    return http.Request(what, "metadata", "GET", f"{_METADATA}/meta-data/{path}", headers)


def _page(
    url: str, now: dt.datetime, instance: _Instance, role: Role, mark: str
) -> http.Exchanges[tuple[list[ET.Element], str]]:
    """Return the volumes of one page, and the token of the next."""
    values = [
        ("Action", _ACTION),
        ("Filter.1.Name", "attachment.instance-id"),
        ("Filter.1.Value.1", instance.id),
        ("MaxResults", _PAGE),
        ("Version", "2016-11-15"),
    ]
    body = http.query_string([*values, ("NextToken", mark)] if mark else values).encode()
    headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    request = signed(
        http.Request(
            what=_ACTION, source="api", method="POST", url=url, headers=headers, body=body
        ),
        role.credentials,
        f"{instance.region}/ec2",
        now,
    )
    response = yield from http.get_response(request, classify=partial(_classify, role.name))
    root = _xml(response.body)
    return list(root.iterfind("volumeSet/item")), root.findtext("nextToken") or ""


def _classify(role: str, response: http.Response) -> tuple[ExchangeReason, str] | None:
    """Return why EC2 rejected a request, by the code of its error."""
    code = _error_code(response.body)
    return why_rejected(
        code, role, "ec2:DescribeVolumes", partial(http.check_clock, _ACTION, response)
    )


def why_rejected(
    code: str, role: str, permission: str, check: Callable[[], None]
) -> tuple[ExchangeReason, str] | None:
    """Return why AWS rejected a request, by the code of its error; None for other codes.

    `check` raises ExchangeError if the clock explains it.
    """
    if code in _DENIED:
        return "denied", (
            f"{permission} was denied to role {role}; add it to the policy of the role"
        )
    if code in _THROTTLED:
        return "throttled", (
            "AWS limits the requests of this account; they are repeated at the next run"
        )
    if code in _EXPIRED | _REJECTED:
        check()
        is_old = code in _EXPIRED
        return "expired" if is_old else "denied", (
            f"AWS rejected the credentials of role {role} ({code}); see that the role exists and"
            " that its session was not revoked"
        )
    return None


def _error_code(body: bytes) -> str:
    try:
        return _xml(body).findtext(".//Code") or ""
    except http.ExchangeError:
        return ""


def _xml(body: bytes) -> ET.Element:
    """Return the root of a document, its names without namespaces. Raise ExchangeError."""
    error = http.failure(_ACTION, "invalid", "the answer is not that of EC2")
    if b"<!DOCTYPE" in body:
        raise error
    try:
        root = ET.fromstring(body)  # noqa: S314 -- without a document type, it has no entities
    except (ET.ParseError, ValueError, LookupError):
        raise error from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def _is_attached(item: ET.Element, instance_id: str) -> bool:
    found = (
        attachment.findtext("instanceId") for attachment in item.iterfind("attachmentSet/item")
    )
    return instance_id in found


def _disk(item: ET.Element) -> http.Exchanges[CloudDisk]:
    """Return a volume. Raise ExchangeError if it has no type, or not its provisioned values."""
    yield from ()  # the listing has everything
    volume, api_type = (
        findings.needed_text(
            _ACTION, item.findtext(name), "[a-z0-9-]", "a volume has no id or no type"
        )
        for name in ("volumeId", "volumeType")
    )
    units = {name: _UNITS[name] for name in PROVISIONED.get(api_type, ())}
    chosen = {name: findings.amount(item.findtext(name), unit) for name, unit in units.items()}
    if None in chosen.values():
        why = f"volume {volume} of type {api_type} has no {' or '.join(chosen)}"
        raise http.failure(_ACTION, "not_found", why)
    return CloudDisk(
        volume,
        api_type,
        size_bytes=findings.amount(item.findtext("size"), GIB),
        iops=chosen.get("iops"),
        bytes_per_second=chosen.get("throughput"),
    )
