"""The report as CSV (RFC 4180): one row for each disk and day, or hour of a short period."""

import csv
from collections.abc import Iterable, Iterator

from disksla.base.text import escape_bytes
from disksla.measure.report.document import DiskReport, Report
from disksla.verdict.throttling import LIMIT_KINDS, VERDICTS

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that starts like this for a formula."""
_COLUMNS = (
    *("instance", "device", "serial", "start", "period_s", "assessed_s", "unassessed_s"),
    *("proven_s", "noncompliant_s", "compliance_ratio", "incidents"),
    *(f"{verdict}_s" for verdict in VERDICTS),
    *(f"throttled_{limit}_s" for limit in LIMIT_KINDS),
    *("throttled_iowait_s", "throttle_wait_s"),
)


def report_csv(report: Report) -> str:
    """Return the rows with a heading. A ratio is empty where the promise was not tested."""
    written = _Text()
    rows = (row for disk in report.disks for row in _rows(disk))
    csv.writer(written).writerows((_COLUMNS, *rows))
    return "".join(written)


class _Text(list[str]):
    """What csv writes to."""

    write = list.append


def _rows(disk: DiskReport) -> Iterator[Iterable[object]]:
    name = [_text(disk.labels.get(label, "")) for label in ("instance", "device")]
    for each in disk.slices:
        totals = each.totals
        numbers = (
            *(totals.period_s, totals.assessed_s, totals.unassessed_s),
            *(totals.proven_s, totals.noncompliant_s, totals.compliance_ratio, each.incidents),
            *(totals.verdict_seconds[verdict] for verdict in VERDICTS),
            *(totals.throttled_seconds.get(limit, 0.0) for limit in LIMIT_KINDS),
            *(totals.throttled_iowait_s, totals.throttle_wait_s),
        )
        yield (*name, _text(disk.serial), each.start, *map(_number, numbers))


def _text(text: str) -> str:
    return escape_bytes(f"'{text}" if text.startswith(_FORMULA) else text)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"
