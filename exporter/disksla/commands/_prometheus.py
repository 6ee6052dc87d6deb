"""Options of commands that read the series of a Prometheus server, and the server they name."""

import argparse

from disksla.base.errors import DiskslaError
from disksla.base.units import parse_duration_s
from disksla.commands._option_table import add_options
from disksla.commands._options import (
    add_password_and_ca,
    parse_option,
    password_headers,
    secret_of,
)
from disksla.measure.prometheus import Period, Server, parse_period

_MINUTE_S = 60


def add_server(
    parser: argparse.ArgumentParser,
    group: argparse._MutuallyExclusiveGroup | None = None,
    *,
    required: bool = False,
) -> None:
    """Add --prometheus, and what a server with TLS and passwords needs; secrets are in files."""
    where = "Prometheus, Thanos Query or VictoriaMetrics, such as http://localhost:9090"
    server = f"--prometheus URL  address of {where}"
    add_options(group or parser, server, {"--prometheus": {"required": required}})
    add_password_and_ca(parser, "--prometheus")
    bearer = "--prometheus.token-file FILE  file with a bearer token"
    add_options(parser, bearer, {"--prometheus.token-file": {"dest": "token_file"}})


def add_period(parser: argparse.ArgumentParser) -> None:
    """Add --from, --to and --last."""
    add_options(
        parser,
        """
--from TIME      start: a date (midnight in UTC), or a time with its zone
--to TIME        end, exclusive; as --from
--last DURATION  in place of --from and --to: the last 30d, 12h or 90m, up to the last full minute
""",
        {"--from": {"dest": "start"}, "--to": {"dest": "end"}},
    )


def period_of(arguments: argparse.Namespace, now_s: float) -> Period:
    """Return the period of the options. Raise DiskslaError."""
    start, end, last = arguments.start, arguments.end, arguments.last
    if (last is None) != (None not in {start, end}) or (last and (start or end)):
        raise DiskslaError("the period is missing; expected --last, or --from and --to")
    if last is None:
        return parse_period(start, end, now_s)
    end_s = int(now_s) // _MINUTE_S * _MINUTE_S
    seconds = int(parse_option("--last", last, parse_duration_s))
    if not _MINUTE_S <= seconds <= end_s:
        raise DiskslaError(f"found --last {last}; expected a minute or more, such as 30d")
    return Period(end_s - seconds, end_s)


def server_of(arguments: argparse.Namespace) -> Server:
    """Return the server with its access. Raise DiskslaError."""
    url = arguments.prometheus.rstrip("/")
    scheme, _, rest = url.partition("://")
    if scheme not in {"http", "https"} or not rest or "@" in rest or not url.isprintable():
        raise DiskslaError(
            f"found --prometheus '{url.rpartition('@')[2]}'; expected an address such as"
            " http://localhost:9090, with passwords in --prometheus.password-file"
        )
    headers = password_headers(arguments.password_file)
    if arguments.token_file is not None:
        headers["Authorization"] = f"Bearer {secret_of(arguments.token_file)}"
    authority = None if arguments.ca_file is None else str(arguments.ca_file)
    return Server(url, headers, authority)
