"""Requirements of a scenario: which of them the findings do not meet."""

from collections.abc import Iterable

from lab.judge import BELOW_WITHIN_S, Findings, relative_error
from lab.scenario import Expectation
from lab.truth import WINDOW_S

SHARE_TOLERANCE = 0.05
"""Of a varying load."""
SECONDS_TOLERANCE = 0.02
SERVICE_TOLERANCE = 0.15
"""Of throttled seconds that are missing: a disk that was learned under a light load serves faster
under a full one, so that too little of the time of its requests counts as waiting."""
EDGE_S = 2 * WINDOW_S
"""Windows at the edges of an episode whose verdict, or whose limit, may be wrong."""
CEILING_TOLERANCE = 0.01
WAIT_TOLERANCE = 0.07
PROMPT_S = 0.3
MOST_SHARE = 0.9
MOSTLY_SHARE = 0.9
CREDIT_WIDTH_SHARE = 0.05
CREDIT_ESTIMATE_SHARE = 0.02
BURST_FOUND_SHARE = 0.9
"""Of the burst depth: the rate of the limiter is known within a share of it, and may be higher."""
EMPTY_TOLERANCE = 0.1
MOST_OF_IOWAIT_SHARE = 0.5
LITTLE_IOWAIT_SHARE = 0.05
"""Of the time in which the disk was throttled."""
_ROUNDING_S = 1e-6


def unmet_requirements(findings: Findings, expected: Expectation) -> list[str]:
    """Return a message for each requirement that is not met."""
    return [*_throttling_problems(findings, expected), *unmet_except_time(findings, expected)]


def unmet_except_time(findings: Findings, expected: Expectation) -> list[str]:
    """Return a message for each requirement that is not met, but those of the throttled time."""
    return [
        *_detection_problems(findings, expected),
        *_other_problems(findings, expected),
        *_below_problems(findings, expected),
        *_credit_problems(findings, expected),
        *_iowait_problems(findings, expected),
    ]


def is_saturated(findings: Findings) -> bool:
    """Return whether requests waited for the limiter at nearly all times under load."""
    return findings.truth_windows_s >= MOSTLY_SHARE * findings.loaded_s


def _throttling_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    # The disk of the lab needs a part of each window to serve the requests of that window. Samples
    # cannot separate that part if several requests are in flight.
    most_s = max(findings.truth_s, findings.truth_windows_s)
    error_s = findings.reported_s - min(max(findings.reported_s, findings.truth_s), most_s)
    match expected.throttled:
        case "never" if findings.reported_s > (EDGE_S if findings.truth_s else 0.0):
            yield f"throttled for {findings.reported_s:.1f} s, expected never"
        case "unknown" if error_s > 2 * EDGE_S * findings.episodes:
            yield f"throttled for {findings.reported_s:.1f} s, truth {findings.truth_s:.1f} s"
        case "seconds" | "throughout":
            is_learned = expected.throttled == "seconds" and error_s < 0
            tolerance = SERVICE_TOLERANCE if is_learned else SECONDS_TOLERANCE
            allowed_s = tolerance * findings.truth_s + 2 * EDGE_S * findings.episodes
            if abs(error_s) > allowed_s:
                yield f"throttled seconds: error {error_s:+.2f}, allowed {allowed_s:.2f}"
        case "most" if (
            not MOST_SHARE * findings.truth_s
            <= findings.reported_s
            <= (1 + SECONDS_TOLERANCE) * most_s
        ):
            yield f"throttled for {findings.reported_s:.1f} s, truth {findings.truth_s:.1f} s"
        case "share" if abs(findings.share_error) > SHARE_TOLERANCE:
            yield f"throttled share: error {findings.share_error:+.3f}, allowed 0.05"
        case "about" if abs(error_s) > SHARE_TOLERANCE * findings.loaded_s:
            share = error_s / findings.loaded_s
            yield f"throttled share: error {share:+.3f}, allowed 0.05"


def _detection_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    if expected.prompt:
        for name, delay_s in (("onset", findings.onset_delay_s), ("end", findings.end_delay_s)):
            if delay_s is None or delay_s > PROMPT_S + _ROUNDING_S:
                yield f"{name} detected after {_shown(delay_s, 's')}, allowed 0.30 s"
    if expected.limit is not None:
        other_s = sum(findings.limits.values()) - findings.limits.get(expected.limit, 0.0)
        is_needed = findings.truth_s > EDGE_S and not expected.is_open
        if (is_needed and expected.limit not in findings.limits) or other_s > EDGE_S + _ROUNDING_S:
            yield f"limit {_shares(findings.limits)}, expected {expected.limit}"


def _other_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    ceiling = findings.ceiling_error
    if expected.ceiling and (ceiling is None or abs(ceiling) > CEILING_TOLERANCE):
        yield f"ceiling: error {_shown(ceiling)}, allowed 1 %"
    if expected.wait:
        # At a leaky bucket, each request takes as long as the limit demands, whatever the disk
        # needs of it. What it needs is known from the lighter load before.
        wait = relative_error(findings.reported_wait_s, findings.true_wait_s)
        # Where the load begins at once, that is not known.
        true_wait_s = findings.true_wait_s or 1.0
        least = -WAIT_TOLERANCE - findings.slower_before_s / true_wait_s
        most = max(WAIT_TOLERANCE, SECONDS_TOLERANCE + findings.unlearned_s / true_wait_s)
        if wait is None or not least <= wait <= most:
            allowed = f"{_shown(least)} to {_shown(most)}"
            yield f"throttle wait: error {_shown(wait)}, allowed {allowed}"
    stalled_s = findings.verdict_s.get("stalled", 0.0)
    if expected.stalled and abs(stalled_s - findings.true_stalled_s) > 2 * EDGE_S:
        yield f"stalled for {stalled_s:.1f} s, truth {findings.true_stalled_s:.1f} s"
    for name in expected.never:
        if seconds := findings.verdict_s.get(name) or findings.limits.get(name):
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
    if findings.below_delay_s is None or findings.below_delay_s > BELOW_WITHIN_S:
        yield f"below detected after {_shown(findings.below_delay_s, 's')}, allowed 2 s"
    if (findings.below_share or 0.0) < MOSTLY_SHARE:
        yield f"share of below after that: {_shown(findings.below_share)}, expected 90 %"


def _credit_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    if expected.credits and findings.credit_violation_share != 0.0:
        yield f"truth outside the credit bounds by {_shown(findings.credit_violation_share)}"
    empty = findings.empty_error
    if expected.empty_since is not None and (empty is None or abs(empty) > EMPTY_TOLERANCE):
        yield f"time to exhaustion: error {_shown(empty)}, allowed 10 %"
    found, true = findings.burst_depth, findings.true_burst_depth
    if found is not None and true is None:
        yield f"burst depth {found:.0f}, expected none"
    if expected.burst and not (
        found is not None
        and true is not None
        and BURST_FOUND_SHARE <= found / true <= 1 + CREDIT_WIDTH_SHARE
    ):
        yield f"burst depth {found}, expected {BURST_FOUND_SHARE:.0%} of {true} at least"
    if not expected.credits_close:
        return
    width, error = findings.credit_width_share, findings.credit_estimate_error_share
    if width is None or width > CREDIT_WIDTH_SHARE:
        yield f"distance of the credit bounds at the end: {_shown(width)}, allowed 5 %"
    if error is None or abs(error) > CREDIT_ESTIMATE_SHARE:
        yield f"credit estimate: error {_shown(error)}, allowed 2 %"


def _iowait_problems(findings: Findings, expected: Expectation) -> Iterable[str]:
    attributed_s, machine_s = findings.attributed_iowait_s, findings.machine_iowait_s
    match expected.iowait:
        case None:
            return
        case _ if attributed_s is None or machine_s is None:
            yield "iowait is unknown"
        case "most" if attributed_s < MOST_OF_IOWAIT_SHARE * machine_s:
            yield f"iowait {attributed_s:.1f} s of {machine_s:.1f} s, expected most"
        case "little" if attributed_s > LITTLE_IOWAIT_SHARE * findings.truth_s:
            yield f"iowait {attributed_s:.1f} s in {findings.truth_s:.1f} s, expected little"


def _shown(value: float | None, unit: str = "%") -> str:
    if value is None:
        return "unknown"
    return f"{value * 100:.1f} %" if unit == "%" else f"{value:.2f} {unit}"


def _shares(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f} s" for name, value in sorted(seconds.items())) or "none"
