"""The formats of a page of metrics: the text format 0.0.4, and OpenMetrics 1.0.

They differ in the lines that describe a family. Sources:
https://prometheus.io/docs/instrumenting/exposition_formats/ and
https://prometheus.io/docs/specs/om/open_metrics_spec/.
"""

from collections.abc import Iterable

from disksla.metrics.families import Family, Sample

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def text_format(families: Iterable[Family]) -> str:
    """Return a page in the text format."""
    return "".join(
        f"# HELP {family.name} {_escape(family.help)}\n"
        f"# TYPE {family.name} {family.kind}\n"
        f"{_lines(family.samples)}"
        for family in families
    )


def openmetrics(families: Iterable[Family]) -> str:
    """Return a page in OpenMetrics, where the name of a counter has no `_total`."""
    return "".join((*map(_openmetrics_family, families), "# EOF\n"))


def _openmetrics_family(family: Family) -> str:
    name, quoted = family.name.removesuffix("_total"), _escape(family.help).replace('"', r"\"")
    return f"# HELP {name} {quoted}\n# TYPE {name} {family.kind}\n{_lines(family.samples)}"


def _lines(samples: Iterable[Sample]) -> str:
    return "".join(
        f"{name}{{{labels}}} {format_value(value)}\n"
        if labels
        else f"{name} {format_value(value)}\n"
        for name, labels, value in samples
    )


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def format_value(value: float) -> str:
    """Return a number with all its digits, as Go prints it: 0.5, 1.234567e+06, +Inf, NaN."""
    if -_EXPONENT_FROM < value < _EXPONENT_FROM:
        return repr(float(value))
    text = repr(float(value))
    point = text.find(".")
    if value > 0 and point > 1:
        digits = f"{text[0]}.{text[1:point]}{text[point + 1 :]}".rstrip("0.")
        return f"{digits}e+{point - 1:02d}"
    return _NOT_FINITE.get(text, text)


_EXPONENT_FROM = 1e6
_NOT_FINITE = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}
