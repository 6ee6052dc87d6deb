"""Options of commands that read the series of a Prometheus server, and the server they name."""

import argparse
import base64
from pathlib import Path

from disksla.errors import DiskslaError
from disksla.prometheus import Server
from disksla.schema.yaml_file import MAX_FILE_BYTES, read_named


def add_server(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add --prometheus, and what a server with TLS and passwords needs; secrets are in files."""
    parser.add_argument(
        "--prometheus",
        required=required,
        metavar="URL",
        help="address of Prometheus, Thanos Query or VictoriaMetrics, such as http://localhost:9090",
    )
    for option, what in (
        ("password-file", "file with USER:PASSWORD"),
        ("token-file", "file with a bearer token"),
        (
            "ca-file",
            "certificates that the server's has to be signed with (default: the system's)",
        ),
    ):
        parser.add_argument(
            f"--prometheus.{option}",
            dest=option.replace("-", "_"),
            type=Path,
            metavar="FILE",
            help=what,
        )


def add_period(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add --from and --to."""
    parser.add_argument(
        "--from",
        dest="start",
        required=required,
        metavar="TIME",
        help="start: a date (midnight in UTC), or a time with its zone",
    )
    parser.add_argument(
        "--to", dest="end", required=required, metavar="TIME", help="end, exclusive; as --from"
    )


def server_of(arguments: argparse.Namespace) -> Server:
    """Return the server with its access. Raise DiskslaError."""
    url = arguments.prometheus.rstrip("/")
    scheme, _, rest = url.partition("://")
    if scheme not in {"http", "https"} or not rest or "@" in rest or not url.isprintable():
        raise DiskslaError(
            f"found --prometheus '{url.rpartition('@')[2]}'; expected an address such as"
            " http://localhost:9090, with passwords in --prometheus.password-file"
        )
    headers: dict[str, str] = {}
    if arguments.password_file is not None:
        credentials = _secret(arguments.password_file).encode()
        headers["Authorization"] = f"Basic {base64.b64encode(credentials).decode()}"
    if arguments.token_file is not None:
        headers["Authorization"] = f"Bearer {_secret(arguments.token_file)}"
    authority = None if arguments.ca_file is None else str(arguments.ca_file)
    return Server(url, headers, authority)


def _secret(path: Path) -> str:
    content = read_named(path, MAX_FILE_BYTES)
    try:
        secret = content.decode().strip()
    except UnicodeDecodeError as error:
        raise DiskslaError(f"cannot read {path}: {error}") from None
    if not secret or not secret.isprintable():
        raise DiskslaError(f"cannot use {path}: expected one line")
    return secret
