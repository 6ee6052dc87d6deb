"""What one tick said of one disk, as a row: the account that `replay` gives."""

import msgspec

from disksla.core.pipeline import State
from disksla.core.tally import load_of


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
        promise = watched.assignment.limits.promise_charges
        recent = watched.tally.recent
        known = before.watched.get(device)
        if recent and recent[-1].end_s == now_s:
            window = recent[-1]
            rows.append(
                Row(
                    now_s,
                    device,
                    None,
                    window.seconds,
                    window.reads,
                    window.writes,
                    window.read_bytes,
                    window.written_bytes,
                    window.inflight,
                    load_of(window, promise),
                )
            )
        elif judged_s and watched.is_listed and known and known.tally is watched.tally:  # it slept
            idle_load = 0.0 if promise else None
            rows.append(Row(now_s, device, None, judged_s, 0, 0, 0, 0, 0, idle_load))
        else:
            rows.append(Row(now_s, device, gap=reasons[0] if reasons else "start"))
    return rows
