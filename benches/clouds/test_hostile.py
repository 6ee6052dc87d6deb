"""`disksla detect` against metadata services and APIs that misbehave.

The good answers are those of the vendors' documents. No public server imitates these services.
"""

import itertools
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clouds.namespace import Ended, Namespace
from clouds.server import Answer, Received, Reply, serving

GOOGLE = {"metadata-flavor": "Google"}
PROVIDERS = ("aws", "azure", "gcp", "yandex", "openstack", "oracle")
LOCALHOST = "127.0.0.1"
API_PORT = 8443
DISK = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d"
COMPUTE = {
    "vmSize": "Standard_D4s_v5",
    "storageProfile": {
        "osDisk": {
            "diskSizeGB": "30",
            "caching": "ReadWrite",
            "managedDisk": {"id": DISK, "storageAccountType": "Premium_LRS"},
        },
        "dataDisks": [],
    },
}
RESOURCE = {"sku": {"name": "Premium_LRS"}, "properties": {"diskSizeGB": 64, "tier": "P6"}}
SECRET = "eyJS3CRET.token"


def azure(request: Received) -> Reply:
    """Answer as the metadata service of Azure does."""
    if request.headers.get("metadata") != "true":
        return Reply(400)
    token = "/metadata/identity/" in request.path
    return Reply(body=json.dumps({"access_token": SECRET} if token else COMPUTE).encode())


def arm(request: Received) -> Reply:
    """Answer as Azure Resource Manager does."""
    if request.headers.get("authorization") != f"Bearer {SECRET}":
        return Reply(401)
    assert request.path == f"{DISK}?api-version=2024-03-02"
    return Reply(body=json.dumps(RESOURCE).encode())


def endless(_: Received) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nmetadata-flavor: Google\r\n\r\n"
    yield from itertools.repeat(b"x" * 65536)


def chunks_without_end(_: Received) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    yield from itertools.repeat(b"10000\r\n" + b"x" * 65536 + b"\r\n")


def slow_body(_: Received) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"
    yield from drip()


def slow_head(_: Received) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nx: "
    yield from drip()


def drip() -> Iterator[bytes]:
    while True:
        time.sleep(0.2)
        yield b"x"


def ask(namespace: Namespace, answer: Answer, *arguments: str | Path) -> Ended:
    with serving(namespace.listen(80), answer):
        return namespace.detect(*arguments)


def with_api(
    namespace: Namespace, api: Answer, certificates: Path, *arguments: str | Path, **env: str
) -> Ended:
    """Run against Azure, with the API at https://localhost."""
    name = env.pop("certificate", "server")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates / f"{name}.crt", certificates / f"{name}.key")
    trusted = {"SSL_CERT_FILE": str(certificates / "authority.crt"), **env}
    chosen = ("--provider", "azure", "--endpoint", f"https://localhost:{API_PORT}", *arguments)
    with (
        serving(namespace.listen(80), azure),
        serving(namespace.listen(API_PORT, LOCALHOST), api, tls),
    ):
        return namespace.detect(*chosen, env=trusted)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda _: Reply(429), "throttled"),
        (lambda _: Reply(500), "unreachable"),
        (lambda _: Reply(body=b"<html>welcome\n</html>", headers=GOOGLE), "invalid"),
        (lambda _: Reply(body=b"[" * 500_000, headers=GOOGLE), "invalid"),
        (lambda _: [b"SSH-2.0-OpenSSH_9.2\r\n"], "invalid"),
        (lambda _: [b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1000 + b"\r\n"], "invalid"),
        (lambda _: [b""], "unreachable"),
    ],
    ids=["429", "500", "html", "brackets", "ssh", "headers", "closed"],
)
def test_wrong_answers(namespace: Namespace, provider: str, answer: Answer, reason: str) -> None:
    ended = ask(namespace, answer, "--provider", provider)
    assert ended.status == 1
    assert ended.reasons == [("metadata", reason)], ended.output
    assert ended.file["disks"] == []
    assert "Traceback" not in ended.output


@pytest.mark.parametrize("provider", PROVIDERS)
def test_redirect_is_not_followed(namespace: Namespace, provider: str) -> None:
    location = {"location": f"http://{LOCALHOST}:8080/", **GOOGLE}
    with (
        serving(namespace.listen(80), lambda _: Reply(302, headers=location)),
        serving(namespace.listen(8080, LOCALHOST), lambda _: Reply()) as other,
    ):
        ended = namespace.detect("--provider", provider)
    assert ended.reasons == [("metadata", "redirected")]
    assert other.requests == []


@pytest.mark.parametrize("answer", [endless, chunks_without_end])
def test_endless_answer_ends(namespace: Namespace, answer: Answer) -> None:
    ended = ask(namespace, answer, "--provider", "gcp")
    assert ended.reasons == [("metadata", "too_large")]
    assert "the answer has more than 1048576 bytes" in ended.output


@pytest.mark.parametrize("answer", [slow_body, slow_head])
def test_slow_answer_ends(namespace: Namespace, answer: Answer) -> None:
    ended = ask(namespace, answer, "--provider", "azure")
    assert ended.reasons == [("metadata", "timeout")]
    assert "there was no complete answer within 5 s" in ended.output


def test_metadata_go_around_the_proxy(namespace: Namespace) -> None:
    with serving(namespace.listen(80), azure) as server:
        proxies = {"http_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
        ended = namespace.detect("--provider", "azure", env=proxies)
    assert len(server.requests) == 2
    assert all("x-forwarded-for" not in request.headers for request in server.requests)
    assert ended.reasons == [("api", "unreachable")]


@pytest.mark.parametrize("certificate", ["itself", "other"])
def test_wrong_certificate(namespace: Namespace, certificates: Path, certificate: str) -> None:
    """Serve with a certificate of a stranger, and with one of the authority for another name."""
    requests: list[Received] = []

    def api(request: Received) -> Reply:
        requests.append(request)
        return arm(request)

    ended = with_api(namespace, api, certificates, certificate=certificate)
    assert ended.reasons == [("api", "invalid")]
    assert "the certificate of the server is not valid" in ended.output
    assert requests == []
    [disk] = ended.file["disks"]
    assert (ended.file["source"], disk["size"]) == ("metadata", "30GiB")


def test_api_through_a_proxy(namespace: Namespace, certificates: Path) -> None:
    """Refuse the tunnel: it is the proxy that was asked, and only for the name of the API."""
    asked: list[str] = []

    def proxy(request: Received) -> Reply:
        asked.append(f"{request.method} {request.path} {request.headers['proxy-authorization']}")
        return Reply(407)

    with serving(namespace.listen(3128, LOCALHOST), proxy):
        address = "http://user:pa%3Ass@127.0.0.1"
        ended = with_api(namespace, arm, certificates, HTTPS_PROXY=address)
        assert ended.reasons == [("api", "unreachable")]
        assert asked == [f"CONNECT localhost:{API_PORT} Basic dXNlcjpwYTpzcw=="]
        assert "pa" + ":ss" not in ended.output
        around = with_api(namespace, arm, certificates, HTTPS_PROXY=address, NO_PROXY="localhost")
    assert around.status == 0


@pytest.mark.parametrize("status", [200, 301, 401, 403, 404, 429, 500])
def test_no_secret_is_shown(
    namespace: Namespace, certificates: Path, status: int, tmp_path: Path
) -> None:
    """Quote the token in every answer of the API."""

    def api(request: Received) -> Reply:
        quoted = request.headers["authorization"]
        body = json.dumps({"error": {"code": quoted, "message": quoted}}).encode()
        return Reply(status, body, {"location": f"https://localhost/{SECRET}", "x": quoted})

    ended = with_api(namespace, api, certificates, "--output", tmp_path / "cloud.json")
    assert ended.status == 1
    assert SECRET not in ended.output
    assert len(ended.reasons) == 1


def test_last_good_file_is_kept(namespace: Namespace, certificates: Path, tmp_path: Path) -> None:
    output = tmp_path / "cloud.json"
    good = with_api(namespace, arm, certificates, "--output", output)
    ended = namespace.detect("--provider", "azure", "--output", output)
    assert (good.status, ended.status) == (0, 1)
    kept = ("source", "origin", "as_of", "machine", "disks", "provider")
    assert [ended.file[key] for key in kept] == [good.file[key] for key in kept]
    assert ended.reasons == [("metadata", "unreachable")]
    assert [path.name for path in tmp_path.iterdir()] == ["cloud.json"]
