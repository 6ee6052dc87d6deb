"""Text from devices and file systems, made fit to be sent."""

from disksla.core.visible import escaped


def printable(text: str) -> str:
    """Give `text` with every byte that is not UTF-8 as a backslash escape.

    Serials and mount points may hold any bytes; Python reads those that are not UTF-8 as lone
    surrogates, which cannot be encoded again.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def fit_for_xml(text: str) -> str:
    """Give `text` with every character that XML 1.0 forbids as a backslash escape.

    Source: https://www.w3.org/TR/xml/#charsets.
    """
    return "".join(
        letter if _is_allowed(letter) else escaped(letter) for letter in printable(text)
    )


def _is_allowed(letter: str) -> bool:
    return (
        letter in "\t\n"
        or " " <= letter <= "\ud7ff"
        or "\ue000" <= letter <= "\ufffd"
        or (letter >= "\U00010000")
    )
