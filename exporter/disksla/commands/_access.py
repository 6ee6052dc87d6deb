"""Options for a server with TLS and passwords; secrets are in files."""

import argparse
import base64
from pathlib import Path

from disksla.errors import DiskslaError
from disksla.schema.yaml_file import MAX_FILE_BYTES, read_named


def add_password_and_ca(parser: argparse.ArgumentParser, option: str) -> None:
    """Add OPTION.password-file and OPTION.ca-file, for the server whose address is OPTION."""
    add_file(parser, f"{option}.password-file", "password_file", "file with USER:PASSWORD")
    add_file(
        parser,
        f"{option}.ca-file",
        "ca_file",
        "certificates that the server's has to be signed with (default: the system's)",
    )


def add_file(parser: argparse.ArgumentParser, option: str, dest: str, what: str) -> None:
    """Add an option that names a file."""
    parser.add_argument(option, dest=dest, type=Path, metavar="FILE", help=what)


def password_headers(path: Path | None) -> dict[str, str]:
    """Return the headers with the password of a file, if it is given. Raise DiskslaError."""
    if path is None:
        return {}
    credentials = base64.b64encode(secret_of(path).encode()).decode()
    return {"Authorization": f"Basic {credentials}"}


def secret_of(path: Path) -> str:
    """Return the one line of a file. Raise DiskslaError."""
    content = read_named(path, MAX_FILE_BYTES)
    try:
        secret = content.decode().strip()
    except UnicodeDecodeError as error:
        raise DiskslaError(f"cannot read {path}: {error}") from None
    if not secret or not secret.isprintable():
        raise DiskslaError(f"cannot use {path}: expected one line")
    return secret
