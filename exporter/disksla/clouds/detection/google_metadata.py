"""The metadata service of Google Cloud, which Yandex Cloud has too."""

from disksla.clouds.http_client import (
    LINK_LOCAL,
    ExchangeError,
    Exchanges,
    Request,
    failure,
    get_response,
    token_in,
)

_BASE = f"http://{LINK_LOCAL}/computeMetadata/v1"
_HEADERS = {"host": "metadata.google.internal", "metadata-flavor": "Google"}
"""The address is used without DNS; the name is what the service expects as its host."""
_OTHER_CLOUD = "the answer is not that of this provider; see that the provider is right"


def get_metadata(what: str, path: str) -> Exchanges[bytes]:
    """Return a value of the metadata.

    Every answer of the service has the header Metadata-Flavor; without it, something else answers.
    """
    request = Request(what, "metadata", "GET", f"{_BASE}/{path}", _HEADERS)
    response = yield from get_response(request, {"not_found": _OTHER_CLOUD})
    if response.headers.get("metadata-flavor") != "Google":
        raise failure(what, "invalid", _OTHER_CLOUD)
    return response.body


def access_token(no_account: str) -> Exchanges[str]:
    """Return a token of the service account; `no_account` explains that there is none."""
    what = "request for a token of the service account"
    path = "instance/service-accounts/default/token"
    try:
        body = yield from get_metadata(what, path)
    except ExchangeError as error:
        if error.reason != "not_found":
            raise
        raise failure(what, "no_credentials", no_account) from None
    token = token_in(what, body)
    if token is None:
        raise failure(what, "invalid", _OTHER_CLOUD)
    return token
