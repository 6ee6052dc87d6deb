"""Checks of how well the verdicts agree with what the provider counts, by the daemon's metrics."""

from collections.abc import Iterator

from disksla.doctor.check_result import CheckResult, note, ok
from disksla.doctor.facts import DaemonFacts, MachineFacts
from disksla.provider_count import NOT_THROTTLED
from disksla.units import format_duration, format_percent

_LEAST_THROTTLED_S = 10.0
"""Below this, a share of agreement says nothing."""
_LEAST_AGREEMENT = 0.8
_RECORD = "disksla record --duration 60s FILE   # under that load; report it as a bug"


def check_agreement(machine: MachineFacts) -> Iterator[CheckResult]:
    """Yield the results for each disk of which the provider counts how long it throttles it."""
    daemon = machine.daemon
    compared = daemon.values("disksla_provider_agreement_seconds_total")
    for device in dict.fromkeys(sample.labels.get("device", "") for sample in compared):
        yield _agreement(daemon, device)


def _agreement(daemon: DaemonFacts, device: str) -> CheckResult:
    check = "provider.agreement"
    whole_s = both_s = same_s = ours_s = theirs_s = 0.0
    for sample in daemon.values("disksla_provider_agreement_seconds_total", device=device):
        whole_s += sample.value
        own, provider = sample.labels.get("limit"), sample.labels.get("provider_limit")
        if NOT_THROTTLED not in {own, provider}:
            both_s += sample.value
            same_s += sample.value * (own == provider)
        elif own != provider:
            ours_s += sample.value * (provider == NOT_THROTTLED)
            theirs_s += sample.value * (own == NOT_THROTTLED)
    throttled_s = both_s + ours_s + theirs_s
    compared = f"in {format_duration(whole_s)} compared with the provider's count"
    if throttled_s < _LEAST_THROTTLED_S:
        return ok(check, f"throttled for {format_duration(throttled_s)} {compared}", device)
    found = (
        f"throttled for {format_duration(both_s)} by both ({format_duration(same_s)} at the same"
        f" limit), {format_duration(ours_s)} only by the verdicts, and"
        f" {format_duration(theirs_s)} only by the provider, {compared}"
    )
    if both_s >= _LEAST_AGREEMENT * throttled_s:
        return ok(check, found, device)
    return note(
        check,
        found,
        expected=f"at least {format_percent(_LEAST_AGREEMENT)} by both",
        fix=_RECORD,
        subject=device,
    )
