"""What one tick said of one disk, as a row: the account that `replay` gives."""

import msgspec

from disksla.credits import CreditLevel
from disksla.pipeline.disk_state import DiskState
from disksla.pipeline.state import State
from disksla.verdict import Interval, LimitKind, ThrottleLevel, Verdict, WindowVerdict, load_of


class WindowRecord(msgspec.Struct, frozen=True):
    """One disk at one tick. Without a window there is a gap, and nothing else is known."""

    monotonic_s: float
    device: str
    gap: str | None = None
    """Why the time since the last tick cannot be judged; `start` where there was none."""
    window_s: float | None = None
    reads: int | None = None
    writes: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    inflight: int | None = None
    """Requests in flight at the end of the window."""
    load_ratio: float | None = None
    """Share of the promise that the window used; None where nothing is promised."""
    verdict: Verdict | None = None
    limit: LimitKind | None = None
    """At which limit the disk is held, if it is throttled."""
    level: ThrottleLevel | None = None
    """Whether that is the base or the burst rate."""
    throttle_wait_s: float | None = None
    """I/O-seconds that throttling added, of the requests that completed in this window."""
    throttled_iowait_s: float | None = None
    """The disk's part of what the host's CPUs were in iowait, if the disk is throttled."""
    throttled_pressure_s: float | None = None
    """Likewise, of the time in which some tasks stood still for I/O."""
    ceiling_iops: float | None = None
    """Rate at which the disk was last seen held."""
    ceiling_bytes_per_second: float | None = None
    credits: tuple[CreditLevel, ...] = ()
    """What is known of burst credits, by resource."""


def window_records(before: State, after: State) -> list[WindowRecord]:
    """Give a row for each watched disk; `after` is `before` advanced by one tick."""
    if after.clocks is None:
        return []
    now_s = after.clocks.monotonic_s
    judged_s = after.assessed.seconds - before.assessed.seconds
    reasons = [
        reason
        for reason, count in after.sampler_stats.gaps.items()
        if count > before.sampler_stats.gaps[reason]
    ]
    rows = []
    for device, watched in sorted(after.monitored.items()):
        recent = watched.totals.recent
        known = before.monitored.get(device)
        if recent and recent[-1].end_s == now_s:
            rows.append(_window_record(known, watched, recent[-1], after.clocks.boottime_s))
        elif (
            judged_s and watched.is_listed and known and known.totals is watched.totals
        ):  # it slept
            idle = Interval(now_s, judged_s, 0, 0, 0, 0, 0, 0, inflight=0)
            asleep = msgspec.structs.replace(watched, window_verdict=WindowVerdict("idle"))
            rows.append(_window_record(asleep, asleep, idle, after.clocks.boottime_s))
        else:
            rows.append(WindowRecord(now_s, device, gap=reasons[0] if reasons else "start"))
    return rows


def _window_record(
    known: DiskState | None, watched: DiskState, window: Interval, boottime_s: float
) -> WindowRecord:
    before = (known or watched).totals.verdict_totals.host
    host = watched.totals.verdict_totals.host.since(before)
    window_verdict, ceiling = watched.window_verdict, watched.detector.ceiling
    account = watched.credits_at(boottime_s)
    throttle = window_verdict.throttle if window_verdict is not None else None
    return WindowRecord(
        window.end_s,
        watched.disk.name,
        None,
        window.seconds,
        window.reads,
        window.writes,
        window.read_bytes,
        window.written_bytes,
        window.inflight,
        load_of(window, watched.assignment.limits.promise_charges),
        window_verdict.verdict if window_verdict is not None else None,
        throttle.limit if throttle is not None else None,
        throttle.level if throttle is not None else None,
        window_verdict.wait_s if window_verdict is not None else None,
        host.iowait_s,
        host.pressure_some_s,
        ceiling.iops if ceiling is not None else None,
        ceiling.bytes_per_second if ceiling is not None else None,
        account.levels(watched.assignment.limits, window) if account is not None else (),
    )
