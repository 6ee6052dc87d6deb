"""Parts of a PromQL expression, found by regular expressions instead of a parser."""

import re
from collections.abc import Iterator

_STRING = re.compile(r'"(?:\\.|[^"\\])*"' + r"|'(?:\\.|[^'\\])*'" + r"|`[^`]*`")
_LABEL_LIST = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_MATCHERS = re.compile(r"\{[^{}]*\}")
_RANGE = re.compile(r"\[[^\]]*\]")
_OFFSET = re.compile(r"\boffset\s+-?\w+|@\s*(?:start\(\)|end\(\)|[\d.]+)")
_NAME = re.compile(r"(?<![\w:.$])([a-zA-Z_:][\w:]*)(\s*\()?")
_KEYWORDS = {"and", "or", "unless", "bool", "atan2", "inf", "nan", "group_left", "group_right"}
_AGGREGATIONS = {"sum", "avg", "min", "max", "count", "topk", "bottomk", "quantile", "stddev"}
_SELECTOR = re.compile(r'([a-zA-Z_:][\w:]*)?\s*\{((?:"(?:\\.|[^"\\])*"|[^{}"])*)\}')
_CREATED = re.compile(
    r'\blabel_(?:replace|join)\(.*?,\s*"(\w+)"((?:,\s*"(?:\\.|[^"\\])*")+)\s*\)', re.DOTALL
)
_CALL = re.compile(r"\b([a-z_][a-z0-9_]*)\s*\(")


def without_strings(expression: str) -> str:
    """Return the expression with all string literals emptied."""
    return _STRING.sub('""', expression)


def metrics_in(expression: str) -> set[str]:
    """Return the names of all metrics in the expression."""
    bare = without_strings(expression)
    for other in (_MATCHERS, _RANGE, _LABEL_LIST, _OFFSET):
        bare = other.sub(" ", bare)
    return {
        name
        for name, call in _NAME.findall(bare)
        if not call and name.lower() not in _KEYWORDS | _AGGREGATIONS
    }


def selectors_in(expression: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield each name of a metric with its matchers; all names of a matcher of `__name__`."""
    named = set()
    for name, inside in _SELECTOR.findall(expression):
        matchers = matchers_in(inside)
        names = [value for label, _, value in matchers if label == "__name__"]
        for each in [name] if name else "|".join(names).split("|"):
            named.add(each)
            yield each, [matcher for matcher in matchers if matcher[0] != "__name__"]
    for name in metrics_in(expression) - named:
        yield name, []


def labels_in(expression: str) -> set[str]:
    """Return the labels that series are joined and aggregated by, without those created there."""
    created = {name for name, _ in _CREATED.findall(expression)}
    lists = re.findall(
        r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)",
        without_strings(expression),
    )
    return {name for each in lists for name in re.findall(r"\w+", each)} - created


def calls_in(expression: str) -> Iterator[tuple[str, str]]:
    """Yield each function with its arguments, nested calls included."""
    bare = without_strings(expression)
    for found in _CALL.finditer(bare):
        yield found[1], bare[found.end() : _closing(bare, found.end())]


def ranges_in(expression: str) -> list[str]:
    """Return every range, as `5m` for `[5m]`; for a subquery, the part before the colon."""
    return [found.partition(":")[0] for found in re.findall(r"\[([^\]]+)\]", expression)]


def matchers_in(expression: str) -> list[tuple[str, str, str]]:
    """Return label, operator and value of every matcher."""
    found = re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:\\.|[^"\\])*)"', expression)
    return [(label, operator, value) for label, operator, value in found]


def seconds_of(duration: str) -> float:
    """Return the length of `5m`, `1h30m` or `1500s` in seconds."""
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}
    parts = re.findall(r"(\d+)(ms|[smhdwy])", duration)
    assert "".join(number + unit for number, unit in parts) == duration, duration
    return sum(int(number) * units[unit] for number, unit in parts)


def _closing(text: str, start: int) -> int:
    depth = 1
    for index in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index
    raise AssertionError(f"unclosed bracket: {text}")
