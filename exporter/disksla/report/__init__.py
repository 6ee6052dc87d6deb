"""Proof for the provider: the compliance of disks in a period, from the series of Prometheus."""

from disksla.report.compliance_text import report_text
from disksla.report.disk_report import ReportCriteria, disk_report, report_of
from disksla.report.document import Report
from disksla.report.gather import read_history
from disksla.report.report_csv import report_csv
