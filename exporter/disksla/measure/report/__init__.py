"""Proof for the provider: the compliance of disks in a period, from the series of Prometheus."""

from disksla.measure.report.compliance_page import report_html, report_page
from disksla.measure.report.disk_report import ReportCriteria, disk_report, read_history, report_of
from disksla.measure.report.document import Report, report_csv
