"""Checks the worked examples of a catalogue row against its rules."""

import math
from collections.abc import Callable, Iterator

from disksla.base.errors import DiskslaError
from disksla.base.schema import InvalidFieldsError
from disksla.base.units import MIB
from disksla.promise.catalogue.derivation import derivation
from disksla.promise.catalogue.derive import derive_limits
from disksla.promise.catalogue.limits import Burst, Rates
from disksla.promise.catalogue.terms import BurstExample, Example, Terms

_TOLERANCE = 1e-9
_SECONDS_TOLERANCE = 0.005  # providers round durations


def check_examples(terms: Terms) -> None:
    """Raise InvalidFieldsError if a rate of an example is not what the rules of the row return."""
    problems: dict[tuple[str | int, ...], str] = {}
    for index, example in enumerate(terms.examples):
        place = ("examples", index)
        try:
            wrong = _wrong_rates(terms, example)
        except DiskslaError as error:
            problems[place] = str(error)
        else:
            problems |= {(*place, *path): text for path, text in wrong.items()}
    if problems:
        raise InvalidFieldsError(problems)


def _wrong_rates(terms: Terms, example: Example) -> dict[tuple[str, ...], str]:
    """Return what was found and what was expected, by the path of what is wrong."""
    limits = derive_limits(terms, example.size_bytes, example.provisioned)
    arithmetic = {
        step.name: f" ({step.steps})"
        for step in derivation(terms, example.size_bytes, example.provisioned)
    }
    wrong: dict[tuple[str, ...], str] = {
        ("rates", key): text + arithmetic.get(name, "")
        for key, name, text in _different(example.rates, limits.rates)
    }
    if example.burst is not None:
        wrong |= _wrong_burst(example.burst, limits.burst)
    return wrong


def _wrong_burst(example: BurstExample, burst: Burst | None) -> dict[tuple[str, ...], str]:
    rates = burst.rates if burst is not None else Rates()
    wrong: dict[tuple[str, ...], str] = {
        ("burst", "rates", key): text for key, _, text in _different(example.rates, rates)
    }
    seconds = None if burst is None else burst.seconds
    if not _is_same(example.seconds, seconds, _SECONDS_TOLERANCE):
        text = f"found {_seconds(example.seconds)}; expected {_seconds(seconds)}"
        wrong["burst", "seconds"] = text
    return wrong


def _different(found: Rates, expected: Rates) -> Iterator[tuple[str, str, str]]:
    """Yield the key of each rate that differs, its name, and a text on both."""
    for key, name, shown in _RATES:
        one, other = getattr(found, key), getattr(expected, key)
        if not _is_same(one, other):
            yield key, name, f"found {shown(one)}; expected {shown(other)}"


def _is_same(found: float | None, expected: float | None, tolerance: float = _TOLERANCE) -> bool:
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=tolerance)


def _seconds(seconds: float | None) -> str:
    return "no credits" if seconds is None else f"{seconds:.6g}s"


def _iops(rate: float | None) -> str:
    return "no limit" if rate is None else f"{rate:.15g}"


def _bandwidth(rate: float | None) -> str:
    return "no limit" if rate is None else f"{rate / MIB:.15g}MiB/s"


_RATES: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("read_iops", "read IOPS", _iops),
    ("write_iops", "write IOPS", _iops),
    ("read_bytes_per_second", "read bandwidth", _bandwidth),
    ("write_bytes_per_second", "write bandwidth", _bandwidth),
)
"""Key of the rate, its name in `derivation`, and how it is written in a catalogue."""
