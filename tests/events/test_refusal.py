"""What the kernel requires, by kernel.perf_event_paranoid."""

import pytest

from disksla.events.opening import describe_refusal


@pytest.mark.parametrize(
    ("paranoia", "expected"),
    [
        (2, "kernel.perf_event_paranoid is 2, at which this kernel requires CAP_PERFMON"),
        (3, "kernel.perf_event_paranoid is 3, at which this kernel requires CAP_SYS_ADMIN"),
        (4, "kernel.perf_event_paranoid is 4, at which this kernel requires CAP_SYS_ADMIN"),
        (None, "kernel.perf_event_paranoid cannot be read"),
    ],
)
def test_refusal_names_the_setting_and_what_is_required(
    paranoia: int | None, expected: str
) -> None:
    assert describe_refusal(paranoia) == expected
