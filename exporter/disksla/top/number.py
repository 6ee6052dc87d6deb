"""Numbers in columns, as iostat writes them."""

_PREFIXES = ("", "k", "M", "G", "T")
_ABSENT = "-"


def number(value: float | None, width: int) -> str:
    """Return a number with at most two decimals that is at most this wide.

    A long one is in thousands (k), millions (M) and so on, at a width of six or more.
    """
    if value is None:
        return _ABSENT
    for power, prefix in enumerate(_PREFIXES):
        text = _decimals(value / 1000**power) + prefix
        if len(text) <= width:
            return text
    return f"{value:.0e}"


def percent(ratio: float | None, width: int) -> str:
    """Return a ratio in percent."""
    return _ABSENT if ratio is None else f"{number(round(100 * ratio, 1), width - 1)}%"


def _decimals(value: float) -> str:
    if value < 9.995:  # noqa: PLR2004 -- below ten
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"  # noqa: PLR2004 -- below 100
