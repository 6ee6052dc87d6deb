"""`disksla report`: proof for the provider, from the series of a Prometheus server."""

import argparse
import time

from disksla import VERSION
from disksla.base.console import progress_bar, to_json, write_file
from disksla.base.errors import DiskslaError
from disksla.clouds.http_client.transport import carry_out
from disksla.commands._means import (
    OF_SOLD,
    WITHIN_S,
    add_series,
    add_sold,
    from_prometheus,
    print_uses,
)
from disksla.commands._option_table import add_options
from disksla.commands._options import add_config_file, check_unused, parse_option
from disksla.commands._prometheus import add_period, add_server, period_of, server_of
from disksla.measure.means.means_page import means_html
from disksla.measure.prometheus import Selection, find_disks, parse_matchers
from disksla.measure.report import (
    Report,
    ReportCriteria,
    disk_report,
    read_history,
    report_csv,
    report_html,
    report_of,
    report_page,
)
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.configuration.settings_file import catalog_directory
from disksla.tell.printed_page import print_parts

_COULD_NOT = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the server, the period, the disks and the outputs."""
    add_server(parser, required=True)
    add_series(parser, of_disksla=True)
    add_period(parser)
    add_options(
        parser,
        """
--disk PATTERN       INSTANCE:DEVICE (with or without the port), serial or mount point, with
                     wildcards; may be repeated (default: all disks)
--match MATCHERS     label matchers of the disks, such as '{team="orders"}'
--objective PERCENT  least compliance that counts as compliant (default: the share of the time for
                     which the provider states the rates, or 100)
--json               print the report as JSON
--html FILE          also write the report to FILE as one self-contained page
--csv FILE           also write the report to FILE as CSV, one row for each disk and day, or hour
                     of a period of up to three days
""",
        {"--disk": {"action": "append", "default": []}, "--match": {"default": "{}"}},
    )
    add_sold(parser)
    add_config_file(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the report. Return 0 if all tested disks comply, 1 if not, 2 if none was tested.

    By the series of node_exporter nothing is tested: 0 if no disk ran at a limit, 1 if one did.
    """
    if arguments.series == "node_exporter":
        return _report_of_means(arguments)
    check_unused(arguments, "--series disksla", OF_SOLD)
    report = _report(arguments)
    if arguments.html is not None:
        write_file(arguments.html, report_html(report).encode())
    if arguments.csv is not None:
        write_file(arguments.csv, report_csv(report).encode())
    if arguments.json:
        print(to_json(report))
    else:
        print_parts(report_page(report))
    return {True: 0, False: 1, None: _COULD_NOT}[report.is_compliant]


def _report_of_means(arguments: argparse.Namespace) -> int:
    """Write what disks did by the series of node_exporter."""
    check_unused(arguments, "--series node_exporter", ("--csv", "--objective"))
    uses, period = from_prometheus(arguments, arguments.disk, parse_matchers(arguments.match))
    if arguments.html is not None:
        write_file(arguments.html, means_html(uses, period).encode())
    print_uses(arguments, uses, period)
    if all(use.use.largest_load is None for use in uses):
        return _COULD_NOT
    return 1 if any(use.use.at_limit for use in uses) else 0


def _report(arguments: argparse.Namespace) -> Report:
    period = period_of(arguments, time.time())
    selection = Selection(parse_matchers(arguments.match), tuple(arguments.disk))
    objective = arguments.objective
    share = None if objective is None else parse_option("--objective", objective, _share)
    catalog = load_catalog(catalog_directory(arguments.config_file))
    server = server_of(arguments)
    basis = ReportCriteria(period, catalog, share)
    found = carry_out(find_disks(server, selection, period), WITHIN_S)
    if not found:
        raise DiskslaError(
            "report failed: the server has no such disks in this period; see that"
            " disksla_disk_info and disksla_verdict_seconds_total are there, and --disk, --match,"
            " --from and --to are right"
        )
    disks = []
    with progress_bar(len(found)) as progress:
        for name, mount_points in found:
            progress(name.title, 0.0)
            asked = read_history(server, name, mount_points, period)
            disks.append(disk_report(carry_out(asked, WITHIN_S), basis))
            progress(name.title, 1.0)
    matchers = f"{{{selection.matchers}}}" if selection.matchers else ""
    selected = [text for text in (matchers, *selection.patterns) if text]
    return report_of(disks, period, selected, VERSION)


def _share(text: str) -> float:
    try:
        share = float(text) / 100
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ValueError(f"found '{text}'; expected a percentage above 0, up to 100, such as 99.9")
    return share
