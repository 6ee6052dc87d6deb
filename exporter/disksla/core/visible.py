"""Characters that are not shown as they are: what a terminal obeys, or a format forbids."""


def visible(text: str) -> str:
    """Give `text` with every character that a terminal would obey, or not show, as an escape.

    Ends of lines stay. A direction mark, for one, would let 'sda' be read where 'ads' stands.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter == "\n" else escaped(letter) for letter in text
    )


def escaped(letter: str) -> str:
    """Give a character as Python would write it in ASCII."""
    return letter.encode("unicode_escape").decode("ascii")
