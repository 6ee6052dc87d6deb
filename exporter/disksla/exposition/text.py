"""Text from devices and file systems, made fit to be sent."""


def printable(text: str) -> str:
    """Give `text` with every byte that is not UTF-8 as a backslash escape.

    Serials and mount points may hold any bytes; Python reads those that are not UTF-8 as lone
    surrogates, which cannot be encoded again.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
