"""kube-apiserver and etcd in a network namespace, and calls as the administrator and as kubelet.

There are no controllers and no kubelet: what they would do of the matter, the methods here do.
"""

import contextlib
import json
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from clouds.namespace import Namespace, clean_environment
from support.waiting import eventually

HOST, PORT = "127.0.0.1", 6444
STORAGE = "/apis/storage.k8s.io/v1"
ETCD_PROGRAM = "server"
"""The name of its package."""
ETCD = "http://127.0.0.1:2379"
ISSUER = "https://kubernetes.default.svc.cluster.local"
START_S = 120
AUDITED = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users: ["{user}"]
  - level: None
"""


class Answer(NamedTuple):
    status: int
    content: Any

    @property
    def version(self) -> str:
        """The resourceVersion of the object or the list."""
        found: str = self.content["metadata"]["resourceVersion"]
        return found


class Cluster:
    """A running API server."""

    def __init__(self, namespace: Namespace, directory: Path, authority: Path) -> None:
        self.namespace = namespace
        self.directory = directory
        self.authority = authority
        """File of the certificates that the server's is signed with."""
        self.administrator = secrets.token_hex()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        content: str = "application/json",
        expected: int | None = None,
    ) -> Answer:
        """Return the answer to a request, which must be a success unless a status is expected."""
        command = ["curl", "--silent", "--show-error", "--cacert", str(self.authority)]
        command += ["--header", f"authorization: Bearer {token or self.administrator}"]
        command += ["--header", f"content-type: {content}", "--request", method]
        command += ["--data", json.dumps(body)] if body is not None else []
        command += ["--write-out", "\n%{http_code}", f"https://{HOST}:{PORT}{path}"]
        run = subprocess.run(
            self.namespace.inside(*command), capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, f"{method} {path}: {run.stderr}"
        text, _, status = run.stdout.rpartition("\n")
        answer = Answer(int(status), json.loads(text) if text.startswith("{") else text)
        is_right = 200 <= answer.status < 300 if expected is None else answer.status == expected
        assert is_right, f"{method} {path}: {answer}"
        return answer

    def create(self, path: str, name: str, **content: Any) -> Answer:
        """Create an object that is not in a namespace, or whose path has the namespace."""
        metadata = {"name": name, **content.pop("metadata", {})}
        return self.call(
            "POST", f"{path}?fieldValidation=Strict", {"metadata": metadata, **content}
        )

    def apply(self, manifest: str) -> None:
        """Apply the objects of a file, as `kubectl apply --server-side --filename` does."""
        for wanted in yaml.safe_load_all(manifest):
            if wanted is not None:
                options = "fieldManager=test&fieldValidation=Strict&force=true"
                path = f"{self._path(wanted)}?{options}"
                self.call("PATCH", path, wanted, content="application/apply-patch+yaml")

    def _path(self, wanted: Mapping[str, Any]) -> str:
        version: str = wanted["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        resources = self.call("GET", root).content["resources"]
        [found] = [
            each
            for each in resources
            if each["kind"] == wanted["kind"] and "/" not in each["name"]
        ]
        metadata = wanted["metadata"]
        if found["namespaced"]:
            root += f"/namespaces/{metadata['namespace']}"
        return f"{root}/{found['name']}/{metadata['name']}"

    def in_memory(self, path: str, version: str) -> None:
        """Wait until the server's memory has what was written last."""
        newer = f"resourceVersion={version}&resourceVersionMatch=NotOlderThan&limit=1"
        self.call("GET", f"{path}?{newer}")

    def token(self, namespace: str, account: str, **spec: Any) -> str:
        """Return a token of a service account, by the TokenRequest API, as kubelet has it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        found: str = self.call("POST", path, {"spec": spec}).content["status"]["token"]
        return found

    def audit(self) -> list[dict[str, Any]]:
        """Return what was requested by the audited user."""
        lines = (self.directory / "audit.log").read_text().splitlines()
        return [json.loads(line) for line in lines]

    @contextlib.contextmanager
    def running(self, programs: Path, certificates: Path, audited: str) -> Iterator[None]:
        """Run both servers in the block."""
        directory = self.directory
        private = ["openssl", "genrsa", "-out", "sa.key", "2048"]
        subprocess.run(private, cwd=directory, check=True, capture_output=True)
        public = ["openssl", "rsa", "-pubout", "-in", "sa.key", "-out", "sa.pub"]
        subprocess.run(public, cwd=directory, check=True, capture_output=True)
        (directory / "audit.yaml").write_text(AUDITED.format(user=audited))
        (directory / "audit.log").touch()
        people = f"{self.administrator},admin,admin,system:masters\n"
        (directory / "tokens.csv").write_text(people)
        etcd = {
            "data-dir": directory / "etcd",
            "listen-client-urls": ETCD,
            "advertise-client-urls": ETCD,
            "listen-peer-urls": "http://127.0.0.1:2380",
            "unsafe-no-fsync": "true",
        }
        old = f"{certificates}/old-server.crt,{certificates}/old-server.key"
        apiserver = {
            "etcd-servers": ETCD,
            "bind-address": HOST,
            "secure-port": PORT,
            "advertise-address": "10.0.0.1",
            "endpoint-reconciler-type": "none",
            "service-cluster-ip-range": "10.0.0.0/24",
            "tls-cert-file": certificates / "server.crt",
            "tls-private-key-file": certificates / "server.key",
            "tls-sni-cert-key": old,
            "authorization-mode": "RBAC",
            "token-auth-file": directory / "tokens.csv",
            "service-account-issuer": ISSUER,
            "service-account-key-file": directory / "sa.pub",
            "service-account-signing-key-file": directory / "sa.key",
            "audit-policy-file": directory / "audit.yaml",
            "audit-log-path": directory / "audit.log",
        }
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._process(programs / ETCD_PROGRAM, etcd))
            stack.enter_context(self._process(programs / "kube-apiserver", apiserver))
            if not eventually(self._is_ready, START_S):
                log = (directory / "kube-apiserver.log").read_text()
                pytest.fail(f"kube-apiserver does not become ready:\n{log[-4000:]}")
            yield

    def _is_ready(self) -> bool:
        with contextlib.suppress(AssertionError):
            return self.call("GET", "/readyz").status == 200
        return False

    @contextlib.contextmanager
    def _process(
        self, program: Path, options: Mapping[str, object]
    ) -> Iterator["subprocess.Popen[bytes]"]:
        words = [f"--{name}={value}" for name, value in options.items()]
        with (self.directory / f"{program.name}.log").open("wb") as log:
            process = subprocess.Popen(
                self.namespace.inside(program, *words),
                env=clean_environment(),
                stdout=log,
                stderr=log,
            )
        with process:
            try:
                yield process
            finally:
                process.kill()
