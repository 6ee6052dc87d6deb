"""Reads credentials: a file in the format of clouds.yaml, and the service account of a pod.

No message quotes the content of the file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import yaml

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.state_file import read_content
from disksla.clouds.detection.kubernetes import Account
from disksla.clouds.detection.openstack import OpenstackCredentials
from disksla.clouds.http_client import plain_token
from disksla.kernel.procfs import names_in_use, parse_mountinfo

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MOST_BYTES = 64 * 1024
_PUBLIC = "public"
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]


class _Auth(msgspec.Struct, frozen=True):
    auth_url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s/]+[!-~]*$")]
    application_credential_id: _Text
    application_credential_secret: _Text


class _Cloud(msgspec.Struct, frozen=True):
    auth: _Auth
    region_name: str | None = None
    interface: str | None = _PUBLIC


class _File(msgspec.Struct, frozen=True):
    clouds: dict[str, _Cloud]


def read_clouds_file(path: Path) -> OpenstackCredentials:
    """Return the credential of the only cloud in a file. Raise DiskslaError if there is none."""
    try:
        data = read_content(path.resolve())  # Kubernetes mounts secrets as links
    except OSError as error:
        raise DiskslaError(f"cannot read {path}: {error.strerror}") from error
    expected = (
        "expected clouds: with one cloud, and auth_url, application_credential_id and"
        " application_credential_secret in its auth:"
    )
    try:
        if len(data) > _MOST_BYTES:
            raise ValueError("it is too large")  # noqa: TRY301
        # A safe loader, which makes no objects.
        content = yaml.load(data, Loader=_LOADER)  # noqa: S506
        [cloud] = msgspec.convert(content, _File).clouds.values()
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
        raise DiskslaError(f"{path}{line}: found a file that is not YAML; {expected}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        where = (
            str(error).rpartition(" - at ")[2].strip("`")
            if isinstance(error, msgspec.ValidationError)
            else ""
        )
        raise DiskslaError(
            f"{path}: found something else{where and f' at {where}'}; {expected}"
        ) from None
    auth = cloud.auth
    return OpenstackCredentials(
        auth.auth_url,
        auth.application_credential_id,
        auth.application_credential_secret,
        cloud.region_name or None,
        (cloud.interface or _PUBLIC).removesuffix("URL"),
    )


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
