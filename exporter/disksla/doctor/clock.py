"""Check of the wall clock: signatures of API requests and ages of terms need the right time."""

from collections.abc import Iterator

from disksla.doctor.check_result import CheckResult, note, ok
from disksla.doctor.facts import ClockFacts
from disksla.units import format_duration


def check_clock(clock: ClockFacts) -> Iterator[CheckResult]:
    """Yield the result of the check of the clock."""
    check = "clock.synchronised"
    if clock.is_synchronised:
        error = "" if clock.error_s is None else f", within {format_duration(clock.error_s)}"
        yield ok(check, f"the clock is synchronised{error}")
    elif clock.is_synchronised is None:
        yield note(
            check,
            f"it is not known whether the clock is synchronised: {clock.problem}",
            expected="a clock that NTP sets",
        )
    else:
        yield note(
            check,
            "the kernel says that the clock is not synchronised; a clock that is wrong by minutes"
            " makes the API of the provider reject requests",
            expected="a clock that NTP sets",
            fix="timedatectl set-ntp true (or start chronyd)",
        )
