"""A report of the provider's acceptance test as text."""

from rich.table import Table

from disksla.base.console import SafeConsole
from disksla.measure.verification.report import (
    VERDICT_TEXT,
    MeasuredLevel,
    SuiteTestResult,
    VerificationReport,
    format_amount,
    format_percent,
    format_subject,
)

_LEVELS: dict[MeasuredLevel, str] = {"base": "base", "burst": "burst", "burst_then_base": "both"}
_STYLES = {"pass": "green", "fail": "bold red", "untested": "yellow", "unmeasured": "yellow"}


def print_report(report: VerificationReport) -> None:
    """Print a report as a table, and whether the promise was kept."""
    console = SafeConsole()
    console.print(report.summary, style="bold")
    console.print(f"Verification report: {format_subject(report)}, suite {report.suite}")
    console.print()
    if any(map(_is_row, report.tests)):
        console.print(_table(report))
        console.print()
    for reason in dict.fromkeys(result.reason for result in report.tests if result.reason):
        tests = ", ".join(result.test for result in report.tests if result.reason == reason)
        console.print(f"{tests}: {reason}")
    for violation in report.violations:
        console.print(f"precondition violated: {violation.message}", style="yellow")
    for measurement in report.unjudged:
        console.print(f"not judged: {measurement}", style="yellow")
    style = {"kept": "bold green", "part": "green", "broken": "bold red"}.get(
        report.verdict, "bold yellow"
    )
    console.print(VERDICT_TEXT[report.verdict], style=style)


def _is_row(result: SuiteTestResult) -> bool:
    """Return whether a result has numbers; the others are listed by their reasons."""
    return result.measured is not None or result.verdict not in {"skipped", "untested"}


def _table(report: VerificationReport) -> Table:
    has_levels = any(result.level for result in report.tests)
    table = Table(box=None, pad_edge=False, padding=(0, 1 if has_levels else 2, 0, 0))
    table.add_column("test", no_wrap=True)
    for heading in ("required", "measured", "ratio", "min"):
        table.add_column(heading, justify="right", no_wrap=True)
    if has_levels:
        table.add_column("level", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for result in filter(_is_row, report.tests):
        table.add_row(*_cells(result, has_levels=has_levels), style=_STYLES.get(result.verdict))
    return table


def _cells(result: SuiteTestResult, *, has_levels: bool) -> list[str]:
    required_ratio = "-" if result.required_ratio is None else f"{result.required_ratio:.0%}"
    level = [_LEVELS[result.level] if result.level else "-"] if has_levels else []
    return [
        result.test,
        format_amount(result.unit, result.required),
        format_amount(result.unit, result.measured),
        format_percent(result.ratio),
        required_ratio,
        *level,
        result.verdict,
    ]
