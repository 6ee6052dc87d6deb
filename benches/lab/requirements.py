"""Requirements of a scenario: which of them the findings do not meet. Pure functions."""

from collections.abc import Iterable

from lab.judge import BELOW_WITHIN_S, Findings
from lab.scenario import Expectation, Throttled
from lab.truth import WINDOW_S

POINTS = 0.08
"""Of the time under load."""
QUARTER = 0.25
"""Of the throttled time."""
ONSET_S = 6.0
"""Of a load that is compared from its start: a known limit is seen after five seconds."""
FEW_POINTS = 0.02
"""Of the time under load: where nothing, or little, is throttled."""
NEVER_SHARE = 0.005
"""Of the time under load."""
EDGE_S = 2 * WINDOW_S
"""Windows at the edges of throttling whose verdict, or whose limit, may be wrong."""
LIMITER_WINDOW_TOLERANCE = 0.02
SEEN_SHARE = 0.3
"""Of the time under load: a limiter that throttles for as long, and for two seconds, shows its
window."""
_SEEN_S = 2.0
CEILING_TOLERANCE = 0.01
MOSTLY_SHARE = 0.9
CREDIT_WIDTH_SHARE = 0.05
CREDIT_ESTIMATE_SHARE = 0.02
EMPTY_TOLERANCE = 0.1
MOST_OF_IOWAIT_SHARE = 0.5
LITTLE_IOWAIT_SHARE = 0.05
"""Of the time in which the disk was throttled."""
_ROUNDING_S = 1e-6


def unmet_requirements(findings: Findings, expected: Expectation) -> list[str]:
    """Return a message for each requirement that is not met."""
    return [
        *time_problems(
            expected.throttled,
            findings.reported_s,
            findings.truth_s,
            findings.loaded_s,
            is_settled=findings.is_settled,
        ),
        *_limiter_problems(findings, expected),
        *_verdict_problems(findings, expected),
        *_below_problems(findings, expected),
        *_credit_problems(findings, expected),
        *_iowait_problems(findings, expected),
    ]


def time_problems(
    kind: Throttled | None,
    reported_s: float,
    truth_s: float,
    loaded_s: float,
    what: str = "",
    *,
    is_settled: bool = False,
) -> Iterable[str]:
    """Yield a message if the throttled seconds do not agree with the truth."""
    least_s, most_s = allowed_seconds(kind, truth_s, loaded_s, is_settled=is_settled)
    if not least_s - _ROUNDING_S <= reported_s <= most_s + _ROUNDING_S:
        allowed = f"allowed {least_s:.2f} to {most_s:.2f}"
        yield f"{what}throttled for {reported_s:.2f} s of {loaded_s:.1f}, {allowed}"


def allowed_seconds(
    kind: Throttled | None, truth_s: float, loaded_s: float, *, is_settled: bool = False
) -> tuple[float, float]:
    """Return the least and the most throttled seconds that a requirement allows."""
    match kind:
        case "never":
            return 0.0, truth_s + max(NEVER_SHARE * loaded_s, EDGE_S if truth_s else 0.0)
        case "points":
            return max(0.0, truth_s - POINTS * loaded_s), truth_s + POINTS * loaded_s
        case "quarter":
            error_s = max(QUARTER * truth_s, FEW_POINTS * loaded_s)
            missed_s = 0.0 if is_settled else ONSET_S
            return max(0.0, truth_s - error_s - missed_s), truth_s + error_s
        case "unknown":
            return 0.0, truth_s + FEW_POINTS * loaded_s
        case _:
            return 0.0, float("inf")


def _limiter_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    is_open = expected.throttled == "unknown"
    if expected.limit is not None:
        other_s = sum(findings.limits.values()) - findings.limits.get(expected.limit, 0.0)
        is_needed = findings.truth_s > EDGE_S and not is_open
        if (is_needed and expected.limit not in findings.limits) or other_s > EDGE_S + _ROUNDING_S:
            yield f"limit {_shares(findings.limits)}, expected {expected.limit}"
    found_s, true_s = findings.limiter_window_s, findings.facts.limiter_window_s
    if expected.throttled == "points" and true_s:
        is_seen = findings.truth_s > max(SEEN_SHARE * findings.loaded_s, _SEEN_S)
        if found_s is None and is_seen:
            yield f"window unknown, expected {true_s * 1e3:.0f} ms"
        if found_s is not None and abs(found_s / true_s - 1) > LIMITER_WINDOW_TOLERANCE:
            yield f"window {found_s * 1e3:.1f} ms, expected {true_s * 1e3:.0f} ms"
    ceiling = findings.ceiling_error
    is_wrong = not is_open if ceiling is None else abs(ceiling) > CEILING_TOLERANCE
    if expected.ceiling and is_wrong:
        yield f"ceiling: error {_percent(ceiling)}, allowed 1 %"


def _verdict_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    stalled_s = findings.verdict_s.get("stalled", 0.0)
    if expected.stalled and abs(stalled_s - findings.true_stalled_s) > 2 * EDGE_S:
        yield f"stalled for {stalled_s:.1f} s, truth {findings.true_stalled_s:.1f} s"
    for name in expected.never:
        if seconds := findings.verdict_s.get(name) or findings.limits_ever.get(name):
            yield f"{name} for {seconds:.1f} s, expected never"
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
        yield f"below for {findings.below_early_s:.1f} s too early"
    delay_s = findings.below_delay_s
    if delay_s is None or delay_s > BELOW_WITHIN_S:
        shown = "unknown" if delay_s is None else f"{delay_s:.2f} s"
        yield f"below detected after {shown}, allowed 2 s"
    if (findings.below_share or 0.0) < MOSTLY_SHARE:
        yield f"share of below after that: {_percent(findings.below_share)}, expected 90 %"


def _credit_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    if expected.credits and findings.credit_violation_share != 0.0:
        yield f"truth outside the credit bounds by {_percent(findings.credit_violation_share)}"
    empty = findings.empty_error
    if expected.empty_since is not None and (empty is None or abs(empty) > EMPTY_TOLERANCE):
        yield f"time to exhaustion: error {_percent(empty)}, allowed 10 %"
    if not expected.credits_close:
        return
    width, error = findings.credit_width_share, findings.credit_estimate_error_share
    if width is None or width > CREDIT_WIDTH_SHARE:
        yield f"distance of the credit bounds at the end: {_percent(width)}, allowed 5 %"
    if error is None or abs(error) > CREDIT_ESTIMATE_SHARE:
        yield f"credit estimate: error {_percent(error)}, allowed 2 %"


def _iowait_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    attributed_s, machine_s = findings.attributed_iowait_s, findings.facts.machine_iowait_s
    match expected.iowait:
        case None:
            return
        case _ if attributed_s is None or machine_s is None:
            yield "iowait is unknown"
        case "most" if attributed_s < MOST_OF_IOWAIT_SHARE * machine_s:
            yield f"iowait {attributed_s:.1f} s of {machine_s:.1f} s, expected most"
        case "little" if attributed_s > LITTLE_IOWAIT_SHARE * findings.truth_s:
            yield f"iowait {attributed_s:.1f} s in {findings.truth_s:.1f} s, expected little"


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value * 100:.1f} %"


def _shares(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f} s" for name, value in sorted(seconds.items())) or "none"
