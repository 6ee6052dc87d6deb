"""Scheduled probes of a real device, by a fake fio."""

import pytest

from disksla.config.settings import ProbeEntry, ProbeTarget
from disksla.probes.probe_scheduler import MAX_JITTER_S, times_of


@pytest.mark.parametrize(
    ("settings", "every_s", "cron", "jitter_s"),
    [
        ({}, 600.0, None, MAX_JITTER_S),
        ({"every_s": 20.0, "splay_s": 10.0}, 20.0, None, 0.5),
        ({"cron": "0 4 * * *"}, 0.0, "0 4 * * *", MAX_JITTER_S),
    ],
)
def test_times_of(
    settings: dict[str, ProbeTarget], every_s: float, cron: str | None, jitter_s: float
) -> None:
    times = times_of(ProbeEntry(kind="read-latency", **settings), 12.5)  # type: ignore[arg-type]
    assert (times.every_s, times.cron, times.offset_s) == (every_s, cron, 12.5)
    assert times.jitter_s == pytest.approx(jitter_s)
