"""Regular expressions that are searched in the names of devices.

They are RE2's, like those of node_exporter and Prometheus: a search takes time by the length of
the name, whatever the expression says. Python's own may try every way to divide a name: '(a|a)*b'
would stop the sampler for minutes.
"""

from typing import Any

import msgspec


class DevicePattern(msgspec.Struct, frozen=True):
    """One expression."""

    pattern: str

    @classmethod
    def parse(cls, text: str) -> "DevicePattern":
        """Read an expression. Raises ValueError, with what is wrong with it, if it is none."""
        try:
            _compiled(text)
        except _re2().error as error:
            words = error.args[0].decode(errors="replace")
            raise ValueError(f"'{text}' is no regular expression ({words})") from None
        return cls(text)

    def is_in(self, name: str) -> bool:
        """Tell whether it matches anywhere in a name."""
        return _compiled(self.pattern).search(_text(name)) is not None


def _compiled(pattern: str) -> Any:
    """Give what searches; RE2 keeps the last 128 of them."""
    re2 = _re2()
    options = re2.Options()
    options.log_errors = False
    return re2.compile(_text(pattern), options)


def _re2() -> Any:
    """Load 3 MiB that are needed only where the configuration filters by name."""
    import re2  # noqa: PLC0415 -- see above

    return re2


def _text(text: str) -> str:
    """Give what can be UTF-8: names of files are read with surrogates where they are not."""
    return text.encode(errors="replace").decode()
