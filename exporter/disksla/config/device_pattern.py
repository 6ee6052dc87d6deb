"""Device patterns: regular expressions that are searched in kernel names.

They are RE2 expressions, as in node_exporter and Prometheus: the time of a search is linear in the
length of the name. Python's `re` backtracks: '(a|a)*b' could stop the sampler for minutes.
"""

from typing import Any

import msgspec
import re2


class DevicePattern(msgspec.Struct, frozen=True):
    """One regular expression."""

    pattern: str

    @classmethod
    def parse(cls, text: str) -> "DevicePattern":
        """Return the pattern. Raise ValueError, with the reason, if RE2 does not compile it."""
        try:
            _compiled(text)
        except re2.error as error:
            reason = error.args[0].decode(errors="replace")
            raise ValueError(f"found '{text}'; expected a regular expression ({reason})") from None
        return cls(text)

    def is_in(self, name: str) -> bool:
        """Return whether the expression matches anywhere in a name."""
        return _compiled(self.pattern).search(_text(name)) is not None


def _compiled(pattern: str) -> Any:
    """Return the compiled expression; RE2 caches the last 128."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(_text(pattern), options)


def _text(text: str) -> str:
    """Return text that can be encoded as UTF-8; file names may contain surrogates."""
    return text.encode(errors="replace").decode()
