"""The night of a database: its scenario, and what is wrong of a round."""

import msgspec
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab.model import decode
from lab.night import ROUND_S, Moment, problems, scenario_text
from lab.scenario import Scenario
from lab.truth import Window


def a_moment(at_s: float, throttled_s: float = 0.0, mib: float = 40.0) -> Moment:
    seconds = {"idle": at_s - throttled_s, "throttled": throttled_s, "stalled": 0.0}
    return Moment(at_s, seconds, mib, 0.0)


def windows(throttled_s: float) -> list[Window]:
    return [Window(1.0, 1.1, 0, 0, 0, 0, 0, 0, 0.0, throttled_s=throttled_s)]


@given(st.integers(1, 60), st.integers(0, 10**6))
def test_scenario_is_valid_and_has_a_limit_for_each_round(rounds: int, seed: int) -> None:
    document = yaml.safe_load(scenario_text(rounds, seed))
    [disk] = msgspec.convert(document, Scenario, dec_hook=decode).disks
    assert [float(change.at) for change in disk.disk.changes] == [
        number * ROUND_S for number in range(1, rounds)
    ]
    assert sum(phase.seconds for phase in disk.load) == ROUND_S


def test_what_is_wrong_of_a_round() -> None:
    begin = a_moment(0.0)
    assert list(problems([begin, a_moment(600.0, 300.0)], windows(270.0))) == []
    assert list(problems([begin, a_moment(600.0, 300.0)], windows(200.0))) == [
        "round 1: 300.0 s throttled; expected 200.0"
    ]
    assert list(problems([begin, a_moment(600.0, 20.0)], [])) == [
        "round 1: 20.0 s throttled; expected 0.0"
    ]
    assert list(problems([begin, a_moment(600.0)._replace(at_s=660.0)], [])) == [
        "round 1: 600.0 s judged; expected 660.0"
    ]
    hours = [a_moment(600.0 * number) for number in range(7)]
    assert list(problems([*hours, a_moment(4200.0, mib=44.0)], [])) == [
        "memory grew by 4.0 MiB after an hour; expected 3.0 at most"
    ]
