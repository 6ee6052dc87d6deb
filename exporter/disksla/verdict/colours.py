"""Colours of verdicts, on pages and terminals."""

from collections.abc import Mapping

from disksla.verdict.verdict import Verdict

VERDICT_COLOURS: Mapping[Verdict, str] = {
    "unproven": "#5e92cc",
    "met": "#3f9c62",
    "throttled": "#d07a0e",
    "below": "#d93a36",
    "stalled": "#9a63c4",
}
"""On pages and terminals, dark and light; idle is a faint colour of the theme."""

VERDICT_STYLE = ".idle { --verdict: var(--line); }\n" + "".join(
    f".{verdict} {{ --verdict: {colour}; }}\n" for verdict, colour in VERDICT_COLOURS.items()
)
