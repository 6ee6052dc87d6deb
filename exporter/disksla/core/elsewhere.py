"""Results that were made elsewhere: to which line of a suite a measurement belongs, if to any."""

from disksla.core.diskspd import is_diskspd, parse_diskspd
from disksla.core.fiojobs import parse_fio_jobs
from disksla.core.precondition import short_runtime
from disksla.core.refusal import Refusal
from disksla.core.suite import Line, Suite
from disksla.core.trial import Trial
from disksla.core.units import format_count, format_size
from disksla.core.verification import JudgedLine, judge, skipped

LARGEST_BYTES = 64 * 1024**2
"""No result that a person would hand in is as long as this."""
_MOST_SHOWN = 60


def decode_text(data: bytes) -> str:
    """Give the text of a result: UTF-8, or what PowerShell writes when output is redirected."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def parse_result(text: str) -> tuple[Trial, ...]:
    """Give the measurements of a result of fio (JSON) or DiskSpd (XML or text).

    Raises Refusal, with what was found, for anything else.
    """
    if is_diskspd(text):
        return parse_diskspd(text)
    if "{" in text:
        return parse_fio_jobs(text)
    beginning = " ".join(text.split())[:_MOST_SHOWN]
    raise Refusal(
        f"neither JSON of fio (--output-format=json) nor XML or text of DiskSpd: '{beginning}'"
    )


def judge_elsewhere(
    suite: Suite, trials: tuple[Trial, ...], tolerance_ratio: float
) -> tuple[tuple[JudgedLine, ...], tuple[str, ...]]:
    """Judge each line of a suite by the measurement that belongs to it.

    Given are the lines, and the measurements that were not judged, each with the reason. Of
    several measurements of one line the worst counts.
    """
    judged: dict[str, list[JudgedLine]] = {line.test: [] for line in suite.lines}
    unjudged = []
    for trial in trials:
        line = _line_of(suite, trial)
        problem = _misfit(suite, trial) if line is None else _unfit(line, trial, tolerance_ratio)
        if line is None or problem:
            unjudged.append(f"{trial.name}: {problem}")
        else:
            judged[line.test].append(judge(line, trial, tolerance_ratio))
    lines = (
        min(judged[line.test], key=lambda each: each.ratio or 0.0)
        if judged[line.test]
        else skipped(line, line.unpromised or "not in the result")
        for line in suite.lines
    )
    return tuple(lines), tuple(unjudged)


def _line_of(suite: Suite, trial: Trial) -> Line | None:
    """Tell the line by the kind of requests, their size and number, and whether at a rate."""
    return next(
        (
            line
            for line in suite.lines
            if (line.pattern, line.request_bytes, line.inflight)
            == (trial.pattern, trial.request_bytes, trial.inflight)
            and (line.rate_iops is None) == (trial.rate_iops is None)
        ),
        None,
    )


def _misfit(suite: Suite, trial: Trial) -> str:
    """Say in which of its conditions a measurement is like no line."""
    at_rate = "" if trial.rate_iops is None else f" at {format_count(trial.rate_iops)} IOPS"
    found = (
        f"{trial.pattern}, {format_size(trial.request_bytes)}, {trial.inflight} in flight{at_rate}"
    )
    alike = [line for line in suite.lines if line.pattern == trial.pattern]
    same_size = [line for line in alike if line.request_bytes == trial.request_bytes]
    if not alike:
        known = ", ".join(sorted({line.pattern for line in suite.lines}))
        return f"{found}; suite {suite.name} has {known} only"
    if not same_size:
        sizes = sorted({line.request_bytes for line in alike})
        known = ", ".join(format_size(size) for size in sizes)
        return f"{found}; suite {suite.name} has {trial.pattern} of {known} only"
    depths = sorted({line.inflight for line in same_size})
    if trial.inflight not in depths:
        return f"{found}; suite {suite.name} has {', '.join(map(str, depths))} in flight here"
    return (
        f"{found}; suite {suite.name} has no such test {'at a' if at_rate else 'without a'} rate"
    )


def _unfit(line: Line, trial: Trial, tolerance_ratio: float) -> str | None:
    """Say why a measurement cannot be judged although it is of the right kind."""
    short = short_runtime(trial.measured.runtime_s, tolerance_ratio)
    if not trial.is_direct:
        return "went through the cache of the operating system, so it did not measure the disk"
    if short is not None:
        return short.words
    if line.rate_iops is not None and (trial.rate_iops or 0.0) < line.rate_iops * 0.999:
        return (
            f"latency at {format_count(trial.rate_iops or 0.0)} IOPS, where it is promised at"
            f" {format_count(line.rate_iops)}"
        )
    return None
