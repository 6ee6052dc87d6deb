"""/proc/pressure/io: parse the time that tasks were stalled on I/O (PSI).

Format: Documentation/accounting/psi.rst.
"""

import re

_TOTAL = re.compile(r"^(some|full) .*\btotal=(\d{1,20})$", re.MULTILINE)
_MICROSECONDS = 1e6


def parse_pressure_s(text: str) -> tuple[float, float]:
    """Return the seconds since boot in which some tasks, and in which all, were stalled on I/O.

    Raise ValueError if the text has no such totals.
    """
    totals = {kind: int(total) / _MICROSECONDS for kind, total in _TOTAL.findall(text)}
    if totals.keys() != {"some", "full"}:
        raise ValueError(f"found {text[:120]!r}; expected lines 'some' and 'full' with total=")
    return totals["some"], totals["full"]
