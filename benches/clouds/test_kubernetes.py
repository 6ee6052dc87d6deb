"""`disksla detect --provider kubernetes` against a server with TLS, as a pod reaches it.

The server is our own, because it has to answer wrongly too; test_apiserver.py has the real one.
Its answers have the shape of the API reference of Kubernetes.
"""

import itertools
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from clouds.namespace import Ended, Namespace
from clouds.server import Answer, Received, Reply, serving

HOST, PORT = "127.0.0.1", 6443
TOKEN = "eyJS3CRET.token"
HANDLE = "vol-0a1b2c3d4e5f60718"
KUBELET = "/var/lib/kubelet"
VOLUME = {
    "kind": "PersistentVolume",
    "metadata": {
        "name": "pvc-1",
        "annotations": {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"},
    },
    "spec": {
        "capacity": {"storage": "100Gi"},
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": HANDLE},
        "claimRef": {"namespace": "db", "name": "data-pg-0"},
        "storageClassName": "fast",
        "volumeAttributesClassName": "quick",
    },
}
OBJECTS = {
    "/api/v1/persistentvolumes/pvc-1": VOLUME,
    "/apis/storage.k8s.io/v1/storageclasses/fast": {"parameters": {"type": "gp3"}},
    "/apis/storage.k8s.io/v1/volumeattributesclasses/quick": {"parameters": {"iops": "6000"}},
}


def api(request: Received) -> Reply:
    """Answer as the API server does to a token that may get these objects."""
    if request.headers.get("authorization") != f"Bearer {TOKEN}":
        return status(401, "Unauthorized")
    found = OBJECTS.get(request.path.partition("?")[0])
    return status(404, "NotFound") if found is None else Reply(body=json.dumps(found).encode())


def status(code: int, reason: str) -> Reply:
    body = {
        "kind": "Status",
        "status": "Failure",
        "reason": reason,
        "message": TOKEN,
        "code": code,
    }
    return Reply(code, json.dumps(body).encode(), {"content-type": "application/json"})


def endless(_: Received) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    yield from itertools.repeat(b"x" * 65536)


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Return a directory with the procfs of a node that has mounted volumes."""
    (tmp_path / "proc" / "1").mkdir(parents=True)
    pods = f"{KUBELET}/pods/8e1a/volumes/kubernetes.io~csi"
    lines = (
        f"90 22 259:2 / {pods}/pvc-1/mount rw - xfs /dev/nvme1n1 rw",
        f"91 22 0:90 / {pods}/secrets/mount rw - tmpfs tmpfs rw",
        f"92 22 259:3 / {pods}/inline/mount rw - xfs /dev/nvme2n1 rw",
    )
    (tmp_path / "proc" / "1" / "mountinfo").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def detect(
    namespace: Namespace,
    node: Path,
    certificates: Path,
    answer: Answer,
    *arguments: str | Path,
    authority: str = "authority",
    certificate: str = "server",
) -> Ended:
    """Run as a container of a pod does."""
    account = node / "account"
    account.mkdir(exist_ok=True)
    (account / "token").write_text(TOKEN)
    (account / "ca.crt").write_bytes((certificates / f"{authority}.crt").read_bytes())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates / f"{certificate}.crt", certificates / f"{certificate}.key")
    env = {"KUBERNETES_SERVICE_HOST": "localhost", "KUBERNETES_SERVICE_PORT": str(PORT)}
    options = ("--provider", "kubernetes", "--credentials", account)
    with serving(namespace.listen(PORT, HOST), answer, tls):
        return namespace.detect(*options, "--path.procfs", node / "proc", *arguments, env=env)


def test_volumes_of_the_node(namespace: Namespace, node: Path, certificates: Path) -> None:
    requests: list[Received] = []

    def answer(request: Received) -> Reply:
        requests.append(request)
        return api(request)

    ended = detect(namespace, node, certificates, answer)
    assert ended.status == 0, ended.output
    assert ended.file["disks"] == [
        {
            "match": {"volume_handle": HANDLE},
            "provider": "aws",
            "api_type": "gp3",
            "iops": 6000,
            "bandwidth": "125MiB/s",
        }
    ]
    assert ended.file["volumes"][0]["claim"] == "data-pg-0"
    assert [(request.method, request.path) for request in requests] == [
        ("GET", "/api/v1/persistentvolumes/inline?resourceVersion=0"),
        *(("GET", f"{path}?resourceVersion=0") for path in OBJECTS),
    ]
    assert TOKEN not in ended.output


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        (
            lambda _: status(403, "Forbidden"),
            "denied",
            'get persistentvolumes; add the verb get on them (API group "")',
        ),
        (lambda _: status(401, "Unauthorized"), "expired", "rejected the token"),
        (lambda _: status(429, "TooManyRequests"), "throttled", "repeated at the next run"),
        (lambda _: Reply(307, headers={"location": "https://x/"}), "redirected", "not followed"),
        (lambda _: Reply(body=b"<html>"), "invalid", "not what the provider documents"),
        (lambda _: [b"SSH-2.0-OpenSSH_9.2\r\n"], "invalid", "not HTTP"),
        (lambda _: [b""], "unreachable", "localhost"),
        (endless, "too_large", "more than 33554432 bytes"),
    ],
    ids=["403", "401", "429", "redirect", "html", "ssh", "closed", "endless"],
)
def test_wrong_answers(
    namespace: Namespace, node: Path, certificates: Path, answer: Answer, reason: str, words: str
) -> None:
    output = node / "kubernetes.json"
    good = detect(namespace, node, certificates, api, "--output", output)
    ended = detect(namespace, node, certificates, answer, "--output", output)
    assert (good.status, ended.status) == (0, 1)
    assert ended.reasons == [("metadata", reason)], ended.output
    assert words in ended.output
    assert TOKEN not in ended.output
    kept: tuple[str, ...] = ("as_of", "disks", "volumes")
    assert [ended.file[key] for key in kept] == [good.file[key] for key in kept]


@pytest.mark.parametrize(
    ("authority", "certificate"), [("itself", "server"), ("authority", "other")]
)
def test_wrong_certificate(
    namespace: Namespace, node: Path, certificates: Path, authority: str, certificate: str
) -> None:
    """Trust another authority than that of the server, and serve with another name."""
    requests: list[Received] = []

    def answer(request: Received) -> Reply:
        requests.append(request)
        return api(request)

    ended = detect(
        namespace, node, certificates, answer, authority=authority, certificate=certificate
    )
    assert ended.reasons == [("metadata", "invalid")]
    assert "the certificate of the server is not valid" in ended.output
    assert requests == []


def test_without_an_account(namespace: Namespace, node: Path) -> None:
    options = ("--provider", "kubernetes", "--credentials", node, "--path.procfs", node / "proc")
    ended = namespace.detect(*options)
    assert ended.status == 2
    assert "KUBERNETES_SERVICE_HOST is not set; run this in a pod" in ended.output
    ended = namespace.detect(*options, "--endpoint", "https://localhost:1")
    assert ended.status == 2
    assert f"cannot read {node}/token: No such file or directory; mount a token" in ended.output
