"""How it goes, in the one line that `systemctl status` shows."""

from disksla.metrics.self_metrics import BuildInfo
from disksla.pipeline import DiskSnapshot, Snapshot

_HELD = {"throttled": "throttled", "below": "below its promise", "stalled": "stalled"}
"""Verdicts that a person wants to hear of, in words; in the order of `VERDICTS`."""


def status_line(snapshot: Snapshot, build_info: BuildInfo) -> str:
    """Say how many disks are watched, which are held now, and what is left of their credits."""
    disks = snapshot.disks
    parts = [f"{len(disks)} disk{'' if len(disks) == 1 else 's'} watched"]
    counts = {verdict: sum(disk.verdict == verdict for disk in disks) for verdict in _HELD}
    parts += [f"{count} {_HELD[verdict]} now" for verdict, count in counts.items() if count]
    left = [(share, disk.disk.name) for disk in disks for share in _credit_shares(disk)]
    if left:
        share, device = min(left)
        parts.append(f"fewest burst credits: {share:.0%} on {device}")
    line = ", ".join(parts)
    unreadable = [source for source, works in snapshot.sampler.collectors.items() if not works]
    if unreadable:
        line += f"; cannot be read: {', '.join(unreadable)}"
    if not build_info.reload_successful:
        line += "; the configuration was refused, the one before is in force"
    return line


def _credit_shares(snapshot: DiskSnapshot) -> list[float]:
    """Give what is thought to be left of each bucket."""
    return [
        level.estimate_credits / level.capacity_credits
        for level in snapshot.credits
        if level.capacity_credits
    ]
