"""Reads the service account of a pod of Kubernetes, and which volumes its node has mounted.

kubelet replaces the token before it expires, so it is read for each run.
"""

from collections.abc import Mapping
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.roots import Roots
from disksla.base.operating_system.state_file import read_content
from disksla.clouds.detection.kubernetes import Account
from disksla.clouds.http_client import plain_token
from disksla.kernel.procfs import names_in_use, parse_mountinfo

DIRECTORY = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def read_account(
    directory: Path, environment: Mapping[str, str], endpoint: str | None = None
) -> Account:
    """Return the service account in a directory with `token` and `ca.crt`.

    `endpoint` replaces the address of the API server in the environment. Raise DiskslaError.
    """
    host, port = environment.get(_HOST), environment.get(_PORT, "443")
    if endpoint is None and not host:
        raise DiskslaError(
            f"cannot ask the API of Kubernetes: {_HOST} is not set; run this in a pod, or give the"
            " address with --endpoint"
        )
    address = f"[{host}]" if host is not None and ":" in host else host
    file = directory / "token"
    try:
        # kubelet makes links to the present files.
        token = plain_token(read_content(file.resolve()).decode(errors="replace").strip())
        authority = (directory / "ca.crt").resolve(strict=True)
    except OSError as error:
        raise DiskslaError(
            f"cannot read {error.filename or file}: {error.strerror}; mount a token of the service"
            " account with its ca.crt"
        ) from error
    if token is None:
        raise DiskslaError(
            f"{file}: found something else; expected the token of a service account"
        )
    return Account(endpoint or f"https://{address}:{port}", token, str(authority))


def read_names(roots: Roots) -> tuple[str, ...]:
    """Return the names of the volumes that kubelet has mounted. Raise DiskslaError."""
    table = roots.mountinfo
    try:
        return names_in_use(parse_mountinfo(table.read_bytes().decode(errors="replace")))
    except OSError as error:
        raise DiskslaError(
            f"cannot read {table}: {error.strerror}; mount the /proc of the node, and name it"
            " with --path.procfs"
        ) from error
