"""Proof for the provider: the compliance of disks in a period, from the series of Prometheus."""

from disksla.report.disk_report import Basis, disk_report, report_of
from disksla.report.document import Report
from disksla.report.gather import Selection, find_disks, read_history
from disksla.report.period import Period, parse_period
from disksla.report.query import Server
from disksla.report.report_csv import report_csv
from disksla.report.report_text import report_text
from disksla.report.selection import DiskName, parse_matchers

__all__ = [
    "Basis",
    "DiskName",
    "Period",
    "Report",
    "Selection",
    "Server",
    "disk_report",
    "find_disks",
    "parse_matchers",
    "parse_period",
    "read_history",
    "report_csv",
    "report_of",
    "report_text",
]
