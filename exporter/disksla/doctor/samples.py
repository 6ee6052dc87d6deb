"""Samples of a metrics page, as the daemon prints them (`metrics/exposition.py`)."""

import re
from collections.abc import Iterator

from disksla.doctor.facts import Sample

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)",?')
_LINE = re.compile(rf"(\w+)(?:{{((?:{_LABEL.pattern})*)}})? (\S+)")
_ESCAPED = re.compile(r"\\(.)")


def parse_samples(page: str) -> Iterator[Sample]:
    """Yield the samples of a page; a line that has none is skipped."""
    for line in page.split("\n"):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        name, labels, value = match[1], match[2] or "", match[5]
        try:
            yield Sample(
                name, {key: _unescape(text) for key, text in _LABEL.findall(labels)}, float(value)
            )
        except ValueError:
            continue


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: "\n" if match[1] == "n" else match[1], text)
