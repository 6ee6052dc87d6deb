"""Characters that are not shown as they are: what a terminal obeys, or a format forbids."""


def escape_control(text: str) -> str:
    """Give `text` with every character that a terminal would obey, or not show, as an escape.

    Ends of lines stay. A direction mark, for one, would let 'sda' be read where 'ads' stands.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter == "\n" else escape_character(letter)
        for letter in text
    )


def escape_character(letter: str) -> str:
    """Give a character as Python would write it in ASCII."""
    return letter.encode("unicode_escape").decode("ascii")


def escape_bytes(text: str) -> str:
    """Give `text` with every byte that is not UTF-8 as a backslash escape.

    Serials and mount points may hold any bytes; Python reads those that are not UTF-8 as lone
    surrogates, which cannot be encoded again.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def escape_xml(text: str) -> str:
    """Give `text` with every character that XML 1.0 forbids as a backslash escape.

    Source: https://www.w3.org/TR/xml/#charsets.
    """
    return "".join(
        letter if _is_allowed(letter) else escape_character(letter)
        for letter in escape_bytes(text)
    )


def _is_allowed(letter: str) -> bool:
    return (
        letter in "\t\n"
        or " " <= letter <= "\ud7ff"
        or "\ue000" <= letter <= "\ufffd"
        or (letter >= "\U00010000")
    )
