"""The history of a measurement, which is scraped faster than it was."""

import urllib.request
from collections.abc import Callable

import pytest

from fleet.measure import CatchingUp, Measurement
from fleet.server import serve_fleet

START_S = 1_790_812_800.0


def clock_at(seconds: list[float]) -> Callable[[], float]:
    """Return a clock that shows the last of these times, after the start."""
    return lambda: START_S + seconds[-1]


def test_clock_runs_faster_until_it_has_caught_up() -> None:
    passed_s = [0.0]
    clock = CatchingUp(590.0, 60.0, clock_at(passed_s))
    assert clock() == clock.begun_s == START_S - 590
    times = []
    for each_s in (5.0, 10.0, 11.0):
        passed_s.append(each_s)
        times.append((clock() - START_S, clock.is_late))
    assert times == [(-290, True), (10, False), (11, False)]


def test_a_measurement_without_history_is_not_late() -> None:
    clock = CatchingUp(0.0, Measurement().speed, clock_at([0.0]))
    assert not clock.is_late
    assert clock() == clock.begun_s == START_S


@pytest.mark.parametrize(("hosts", "interval_s"), [(3, 1.0), (100, 1.0), (300, 3.0)])
def test_history_is_scraped_as_fast_as_the_server_can(hosts: int, interval_s: float) -> None:
    measurement = Measurement(hosts, 60.0)
    assert measurement.fast_interval_s == interval_s
    assert measurement.speed == 60 / interval_s


def test_samples_have_the_time_of_the_clock() -> None:
    with serve_fleet(1, START_S - 7200, clock_at([-3600.0]), with_times=True) as address:
        accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
        request = urllib.request.Request(f"http://{address}/host-0001/metrics", headers=accept)
        with urllib.request.urlopen(request) as response:
            page = response.read().decode()
    times = [line.rsplit(" ", 1)[1] for line in page.splitlines() if not line.startswith("#")]
    assert len(times) > 500
    assert set(times) == {f"{START_S - 3600:.3f}"}
    assert page.endswith("# EOF\n")
