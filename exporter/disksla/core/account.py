"""What one tick said of one disk, as a row: the account that `replay` gives."""

import msgspec

from disksla.core.hostwait import between
from disksla.core.interval import Interval, load_of
from disksla.core.pipeline import State
from disksla.core.purse import CreditLevel
from disksla.core.throttle import Level, LimitKind
from disksla.core.verdict import Judgement, Verdict
from disksla.core.watched import Watched


class Row(msgspec.Struct, frozen=True):
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
    level: Level | None = None
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


def account(before: State, after: State) -> list[Row]:
    """Give a row for each watched disk; `after` is `before` advanced by one tick."""
    if after.clocks is None:
        return []
    now_s = after.clocks.monotonic_s
    judged_s = after.assessed.seconds - before.assessed.seconds
    reasons = [
        reason
        for reason, count in after.sampling.gaps.items()
        if count > before.sampling.gaps[reason]
    ]
    rows = []
    for device, watched in sorted(after.watched.items()):
        recent = watched.tally.recent
        known = before.watched.get(device)
        if recent and recent[-1].end_s == now_s:
            rows.append(_window_row(known, watched, recent[-1], after.clocks.boottime_s))
        elif judged_s and watched.is_listed and known and known.tally is watched.tally:  # it slept
            idle = Interval(now_s, judged_s, 0, 0, 0, 0, 0, 0, inflight=0)
            asleep = msgspec.structs.replace(watched, judgement=Judgement("idle"))
            rows.append(_window_row(asleep, asleep, idle, after.clocks.boottime_s))
        else:
            rows.append(Row(now_s, device, gap=reasons[0] if reasons else "start"))
    return rows


def _window_row(
    known: Watched | None, watched: Watched, window: Interval, boottime_s: float
) -> Row:
    host = between((known or watched).tally.ledger.host, watched.tally.ledger.host)
    judgement, ceiling = watched.judgement, watched.past.ceiling
    purse = watched.purse_at(boottime_s)
    hold = judgement.hold if judgement is not None else None
    return Row(
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
        judgement.verdict if judgement is not None else None,
        hold.limit if hold is not None else None,
        hold.level if hold is not None else None,
        judgement.wait_s if judgement is not None else None,
        host.iowait_s,
        host.pressure_some_s,
        ceiling.iops if ceiling is not None else None,
        ceiling.bytes_per_second if ceiling is not None else None,
        purse.levels(watched.assignment.limits, window) if purse is not None else (),
    )
