"""The status line that `systemctl status` shows (STATUS= of sd_notify)."""

from disksla.serve.metrics.self_metrics import BuildInfo
from disksla.state.pipeline import DiskSnapshot, Snapshot

_PROBLEMS = {"throttled": "throttled", "below": "below its promise", "stalled": "stalled"}
"""Verdicts that are shown, and their text; in the order of `VERDICTS`."""


def status_line(snapshot: Snapshot, build_info: BuildInfo) -> str:
    """Return the number of monitored disks, their problems, and the lowest burst credits."""
    disks = snapshot.disks
    parts = [f"{len(disks)} disk{'' if len(disks) == 1 else 's'} monitored"]
    counts = {verdict: sum(disk.verdict == verdict for disk in disks) for verdict in _PROBLEMS}
    parts += [f"{count} {_PROBLEMS[verdict]} now" for verdict, count in counts.items() if count]
    left = [(share, disk.disk.name) for disk in disks for share in _credit_shares(disk)]
    if left:
        share, device = min(left)
        parts.append(f"lowest burst credits: {share:.0%} on {device}")
    line = ", ".join(parts)
    unreadable = [source for source, works in snapshot.sampler.collectors.items() if not works]
    if unreadable:
        line += f"; cannot read: {', '.join(unreadable)}"
    if not build_info.reload_successful:
        line += "; configuration reload failed, previous configuration in effect"
    return line


def _credit_shares(snapshot: DiskSnapshot) -> list[float]:
    """Return the estimated credits of each bucket as a share of its capacity."""
    return [
        level.estimate_credits / level.capacity_credits
        for level in snapshot.credits
        if level.capacity_credits
    ]
