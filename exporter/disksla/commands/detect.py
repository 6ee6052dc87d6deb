"""`disksla detect`: ask the cloud for the types of the disks, and write them as terms."""

import argparse
import datetime as dt
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from disksla.base.errors import DiskslaError
from disksla.base.operating_system import provider_of
from disksla.base.operating_system.log import error_lines
from disksla.base.operating_system.machine import Roots, default_roots, read_dmi
from disksla.base.operating_system.state_file import read_content, replace_file
from disksla.base.text import escape_control
from disksla.clouds.detection import (
    KUBERNETES,
    PROVIDERS,
    Detected,
    DetectedTermsFile,
    decode_terms_file,
    detect_kubernetes,
    encode_terms_file,
    exchanges_of,
    terms_file,
)
from disksla.clouds.detection.clouds_file import DIRECTORY, read_account, read_names
from disksla.clouds.detection.file_storages import with_storage_entries
from disksla.clouds.detection.findings import DetectionProblem
from disksla.clouds.detection.openstack import OpenstackCredentials
from disksla.clouds.detection.providers import WITH_CREDENTIALS_FILE
from disksla.clouds.http_client import Exchanges
from disksla.clouds.http_client.transport import carry_out
from disksla.commands._option_table import add_options, add_paths_of
from disksla.kernel.nfs import FileStorage
from disksla.kernel.nfs.nfs_files import read_file_storages

_WITHIN_S = 120.0
_MODE = 0o644
"""The daemon reads the file as another user. It has no secrets."""
_INCOMPLETE = 1
_CLOUDS_FILE = "clouds.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --provider, --credentials, --endpoint, --cinder, --path.* and --output."""
    add_options(
        parser,
        f"""
--provider NAME     provider to ask: {", ".join(PROVIDERS)} (default: the one that DMI names); or
                    {KUBERNETES}: the API server, for the volumes of this node
--credentials FILE  clouds.yaml with an application credential, for OpenStack and VK Cloud
                    (default: clouds.yaml in $CREDENTIALS_DIRECTORY); for Kubernetes, the
                    directory of the service account (default: {DIRECTORY})
--endpoint URL      address of the API, such as that of a private endpoint (default: the public
                    one); with efs=, fsx= or file= before it, of EFS, FSx or Filestore
--cinder NAME       for Kubernetes, provider of volumes of the Cinder driver:
                    {", ".join(WITH_CREDENTIALS_FILE)} (default: %(default)s)
--output FILE       file of terms to replace; it keeps what is not found out this time
                    (default: standard output)
""",
        {
            "--provider": {"choices": (*PROVIDERS, KUBERNETES)},
            "--endpoint": {"action": "append", "default": []},
            "--cinder": {"choices": WITH_CREDENTIALS_FILE, "default": "openstack"},
        },
    )
    roots = default_roots()
    add_paths_of(parser, {"procfs": roots.procfs, "rootfs": roots.rootfs})


def run(arguments: argparse.Namespace) -> int:
    """Write what was found out, and the problems to standard error."""
    provider = arguments.provider or _provider_of_machine()
    if provider is None:
        _warn(
            "detection failed: DMI does not name a provider that can be asked;"
            " choose one with --provider, or write the terms to a file of terms.d"
        )
        return _INCOMPLETE
    now = dt.datetime.now(dt.UTC)
    storages, unknown = _file_storages(provider, arguments)
    detected = carry_out(_exchanges(provider, arguments, now, storages), _WITHIN_S)
    detected = replace(detected, problems=(*detected.problems, *unknown))
    last = _last(arguments.output) if arguments.output is not None else None
    file = with_storage_entries(terms_file(detected, last, now), detected, last)
    content = encode_terms_file(file)
    if arguments.output is None:
        sys.stdout.write(content.decode())
    else:
        _write(arguments.output, content)
    for problem in detected.problems:
        _warn(problem.message)
    return _INCOMPLETE if detected.problems else 0


def _file_storages(
    provider: str, arguments: argparse.Namespace
) -> tuple[tuple[FileStorage, ...], tuple[DetectionProblem, ...]]:
    """Return the file storages that are mounted, and why some are not known."""
    if provider == KUBERNETES:  # it has no credentials to ask for them
        return (), ()
    try:
        found, unknown = read_file_storages(
            Roots(procfs=arguments.path_procfs, rootfs=arguments.path_rootfs), provider
        )
    except OSError as error:
        found, unknown = (), (f"cannot read the mount table: {error.strerror}",)
    return found, tuple(DetectionProblem("metadata", "not_found", why) for why in unknown)


def _exchanges(
    provider: str,
    arguments: argparse.Namespace,
    now: dt.datetime,
    storages: tuple[FileStorage, ...],
) -> Exchanges[Detected]:
    """Return what is to be asked. Raise DiskslaError."""
    endpoints = _endpoints(arguments.endpoint)
    if provider == KUBERNETES:
        endpoint = endpoints.get("")
        account = read_account(arguments.credentials or DIRECTORY, os.environ, endpoint)
        names = read_names(Roots(procfs=arguments.path_procfs))
        return detect_kubernetes(account, names, arguments.cinder)
    credentials = _credentials(provider, arguments.credentials)
    return exchanges_of(
        provider, now=now, endpoints=endpoints, credentials=credentials, storages=storages
    )


def _provider_of_machine() -> str | None:
    """Return the provider that DMI names, if it can be asked; None otherwise."""
    provider = provider_of(read_dmi(Roots()))
    return provider if provider in PROVIDERS else None


def _credentials(provider: str, path: Path | None) -> OpenstackCredentials | None:
    """Return the application credential of the file, or of systemd; None without either."""
    if provider not in WITH_CREDENTIALS_FILE:
        return None
    if path is None:
        directory = os.environ.get("CREDENTIALS_DIRECTORY")
        path = Path(directory or "/nonexistent") / _CLOUDS_FILE
        if not path.exists():
            return None
    # YAML is loaded for the providers that need it only.
    from disksla.clouds.detection.clouds_file import read_clouds_file  # noqa: PLC0415

    try:
        return read_clouds_file(path)
    except DiskslaError as error:  # a problem of the file of terms too
        _warn(str(error))
        return None


def _endpoints(texts: Sequence[str]) -> Mapping[str, str]:
    """Return the addresses of APIs by name, without slashes at their end. Raise DiskslaError."""
    found = {}
    for text in texts:
        named = re.fullmatch(r"(?:(efs|fsx|file)=)?(https?://.*[^/].*)", text)
        if named is None or not text.isprintable():
            raise DiskslaError(
                f"found --endpoint '{text}'; expected an address such as https://ec2.example.com,"
                " or efs=, fsx= or file= before it"
            )
        found[named[1] or ""] = named[2].rstrip("/")
    return found


def _last(path: Path) -> DetectedTermsFile | None:
    """Return what the file has that is to be replaced; None if there is none, or another file."""
    try:
        return decode_terms_file(read_content(path))
    except FileNotFoundError:
        return None
    except (OSError, DiskslaError) as error:
        _warn(f"cannot keep what {path} has: {error}; it is replaced")
        return None


def _write(path: Path, content: bytes) -> None:
    try:
        replace_file(path, content, _MODE)
    except OSError as error:
        raise DiskslaError(f"cannot write {path}: {error.strerror}") from error


def _warn(message: str) -> None:
    print(error_lines(f"disksla: {escape_control(message)}"), file=sys.stderr)
