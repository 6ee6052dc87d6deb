"""The text of /proc/pressure/io (Documentation/accounting/psi.rst)."""

import re

_TOTAL = re.compile(r"^(some|full) .*\btotal=(\d{1,20})$", re.MULTILINE)
_MICROSECONDS = 1e6


def parse_pressure_s(text: str) -> tuple[float, float]:
    """Give the seconds in which some tasks, and in which all, stood still for I/O.

    Raises ValueError for anything else.
    """
    totals = {kind: int(total) / _MICROSECONDS for kind, total in _TOTAL.findall(text)}
    if totals.keys() != {"some", "full"}:
        raise ValueError(f"no totals of some and full in {text[:120]!r}")
    return totals["some"], totals["full"]
