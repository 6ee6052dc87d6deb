"""Signature Version 4 of AWS: the header by which a request proves its credentials.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
"""

import datetime as dt
import hashlib
import hmac

import msgspec

from disksla.clouds.http_client import Request

_ALGORITHM = "AWS4-HMAC-SHA256"


class AwsCredentials(msgspec.Struct, frozen=True):
    """Temporary credentials of the role of an instance."""

    key_id: str
    secret: str
    token: str = ""
    """Session token; empty for the key of a user."""

    def __repr__(self) -> str:
        """Return a text without secrets."""
        return "AwsCredentials(...)"


def signed(request: Request, credentials: AwsCredentials, scope: str, now: dt.datetime) -> Request:
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
