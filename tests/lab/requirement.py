"""What a scenario requires of disksla, held against how near it came."""

from collections.abc import Iterable

from lab.judge import BELOW_WITHIN_S, Findings, relative
from lab.scenario import Expectation
from lab.truth import WINDOW_S

SHARE_TOLERANCE = 0.1
"""Of a load that varies. The aim is 0.05, and mostly reached; who is held for the last
milliseconds of a window waits too little to be seen, and on a busy machine others wait as if they
were held."""
SECONDS_TOLERANCE = 0.02
EDGE_S = 2 * WINDOW_S
"""Windows at the edge of an episode that may be told wrongly."""
CEILING_TOLERANCE = 0.01
WAIT_TOLERANCE = 0.05
PROMPT_S = 0.3
MOST_SHARE = 0.75
MOSTLY_SHARE = 0.9
CREDIT_WIDTH_SHARE = 0.05
CREDIT_ESTIMATE_SHARE = 0.02
EMPTY_TOLERANCE = 0.1
MOST_OF_IOWAIT_SHARE = 0.5
LITTLE_IOWAIT_SHARE = 0.05
"""Of the time that the disk was throttled."""
_ROUNDING_S = 1e-6


def shortcomings(findings: Findings, expected: Expectation) -> list[str]:
    """Say what was not as expected; nothing if all was."""
    return [
        *_throttling_problems(findings, expected),
        *_other_problems(findings, expected),
        *_below_problems(findings, expected),
        *_credit_problems(findings, expected),
        *_iowait_problems(findings, expected),
    ]


def _throttling_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    error_s = findings.said_s - findings.truth_s
    match expected.throttled:
        case "never" if findings.said_s:
            yield f"throttled for {findings.said_s:.1f} s, which it never was"
        case "seconds":
            allowed_s = SECONDS_TOLERANCE * findings.truth_s + 2 * EDGE_S * findings.episodes
            if abs(error_s) > allowed_s:
                yield f"throttled seconds are off by {error_s:+.2f}, {allowed_s:.2f} allowed"
        case "most" if (
            not MOST_SHARE <= findings.said_s / findings.truth_s <= 1 + SECONDS_TOLERANCE
        ):
            yield f"throttled for {findings.said_s:.1f} s of {findings.truth_s:.1f} s"
        case "share" if abs(findings.share_error) > SHARE_TOLERANCE:
            yield f"throttled share is off by {findings.share_error:+.3f}, 0.1 allowed"
    if expected.prompt:
        for name, delay_s in (("onset", findings.onset_delay_s), ("end", findings.end_delay_s)):
            if delay_s is None or delay_s > PROMPT_S + _ROUNDING_S:
                yield f"{name} seen after {_told(delay_s, 's')}, 0.30 s allowed"
    if expected.limit is not None and set(findings.limits) != {expected.limit}:
        yield f"limit {_shares(findings.limits)}, expected {expected.limit}"


def _other_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    ceiling = findings.ceiling_error
    if expected.ceiling and (ceiling is None or abs(ceiling) > CEILING_TOLERANCE):
        yield f"error of the ceiling: {_told(ceiling)}, 1 % allowed"
    if expected.wait:
        wait = relative(findings.wait_said_s, findings.wait_truth_s)
        if wait is None or abs(wait) > WAIT_TOLERANCE:
            yield f"error of the wait: {_told(wait)}, 5 % allowed"
    stalled_s = findings.verdict_s.get("stalled", 0.0)
    if expected.stalled and abs(stalled_s - findings.stalled_truth_s) > 2 * EDGE_S:
        yield f"stalled for {stalled_s:.1f} s, truth {findings.stalled_truth_s:.1f} s"
    for verdict in expected.never:
        if seconds := findings.verdict_s.get(verdict):
            yield f"{verdict} for {seconds:.1f} s, expected never"
    if expected.mostly is not None:
        idle = expected.mostly == "idle"
        verdicts = findings.verdict_s if idle else findings.loaded_verdict_s
        share = verdicts.get(expected.mostly, 0.0) / (sum(verdicts.values()) or 1.0)
        if share < MOSTLY_SHARE:
            yield f"verdicts {_shares(verdicts)}, expected mostly {expected.mostly}"


def _below_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    if expected.below_since is None:
        return
    if findings.below_early_s:
        yield f"below for {findings.below_early_s:.1f} s before it was"
    if findings.below_delay_s is None or findings.below_delay_s > BELOW_WITHIN_S:
        yield f"below seen after {_told(findings.below_delay_s, 's')}, 2 s allowed"
    if (findings.below_share or 0.0) < MOSTLY_SHARE:
        yield f"share of below after that: {_told(findings.below_share)}"


def _credit_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    if expected.credits and findings.credit_violation_share != 0.0:
        yield f"credit bounds miss the truth by: {_told(findings.credit_violation_share)}"
    empty = findings.empty_error
    if expected.empty_since is not None and (empty is None or abs(empty) > EMPTY_TOLERANCE):
        yield f"error of the time to exhaustion: {_told(empty)}, 10 % allowed"
    if not expected.credits_close:
        return
    width, error = findings.credit_width_share, findings.credit_estimate_error_share
    if width is None or width > CREDIT_WIDTH_SHARE:
        yield f"distance of the credit bounds in the end: {_told(width)}, 5 % allowed"
    if error is None or abs(error) > CREDIT_ESTIMATE_SHARE:
        yield f"error of the credit estimate: {_told(error)}, 2 % allowed"


def _iowait_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    said_s, machine_s = findings.iowait_said_s, findings.iowait_machine_s
    match expected.iowait:
        case None:
            return
        case _ if said_s is None or machine_s is None:
            yield "nothing is known of iowait"
        case "most" if said_s < MOST_OF_IOWAIT_SHARE * machine_s:
            yield f"iowait {said_s:.1f} s of the machine's {machine_s:.1f} s, expected most"
        case "little" if said_s > LITTLE_IOWAIT_SHARE * findings.truth_s:
            yield f"iowait {said_s:.1f} s in {findings.truth_s:.1f} s, expected little"


def _told(value: float | None, unit: str = "%") -> str:
    if value is None:
        return "unknown"
    return f"{value * 100:.1f} %" if unit == "%" else f"{value:.2f} {unit}"


def _shares(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f} s" for name, value in sorted(seconds.items())) or "none"
