"""The unit of systemd: which values are in force, from the texts of the unit and its drop-ins."""

import re
from collections.abc import Iterable

_CONTINUED = re.compile(r"\\\n")


def parse_unit(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of each key of [Service], in order; an empty value removes those before.

    Source: systemd.syntax(7).
    """
    values: dict[str, tuple[str, ...]] = {}
    for text in texts:
        section = ""
        for each in _CONTINUED.sub(" ", text).splitlines():
            line = each.strip()
            if line.startswith("["):
                section = line
            elif section == "[Service]" and not line.startswith(("#", ";")):
                key, assigned, value = (part.strip() for part in line.partition("="))
                if assigned:
                    values[key] = (*values.get(key, ()), value) if value else ()
    return values
