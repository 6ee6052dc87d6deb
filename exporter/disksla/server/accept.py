"""What a client accepts, by the headers Accept and Accept-Encoding (RFC 9110, section 12.4.2)."""

import re
from typing import NamedTuple

_QUALITY = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)", re.ASCII)


class Accepted(NamedTuple):
    """One entry of such a header."""

    value: str
    """A media range or a coding, in lower case."""
    parameters: frozenset[str]
    """As `name=value`, in lower case, without `q`."""
    quality: float
    """From 0, not acceptable, to 1."""


def accepted(header: str) -> list[Accepted]:
    """Return the entries of a header; one with an invalid quality is not acceptable."""
    entries = []
    for entry in header.lower().split(","):
        value, *parameters = (part.strip() for part in entry.split(";"))
        pairs = ["=".join(map(str.strip, each.split("=", 1))) for each in parameters]
        qualities = [pair.removeprefix("q=") for pair in pairs if pair.startswith("q=")]
        others = frozenset(pair for pair in pairs if not pair.startswith("q="))
        entries.append(Accepted(value, others, _quality(qualities)))
    return entries


def accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding header has gzip, and does not prefer no coding."""
    qualities = {each.value: each.quality for each in accepted(header)}
    gzip = qualities.get("gzip", 0.0)
    return gzip > 0 and gzip >= qualities.get("identity", 0.0)


def _quality(texts: list[str]) -> float:
    if not texts:
        return 1.0
    return float(texts[0]) if _QUALITY.fullmatch(texts[0]) else 0.0
