"""The values of sysfs attributes: numbers that must be numbers, names fit to be shown."""

from disksla.procfs import SECTOR_BYTES

LONGEST_NAME = 256
"""Of a serial number or a model."""

_TOO_MANY = 2**64
_TOO_LARGE = 2**63


def parse_count(text: str) -> int:
    """Give the number that an attribute holds. Raises ValueError if it holds something else."""
    digits = text.strip(" \n")
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"expected a whole number, found {_shown(text)}")
    count = int(digits)
    if count >= _TOO_MANY:
        raise ValueError(f"expected a number within 64 bits, found {_shown(text)}")
    return count


def parse_sectors(text: str) -> int:
    """Give the bytes of so many sectors. Raises ValueError beyond what files can be read to."""
    size_bytes = parse_count(text) * SECTOR_BYTES
    if size_bytes >= _TOO_LARGE:
        raise ValueError(f"expected sectors of less than 8 EiB, found {_shown(text)}")
    return size_bytes


def parse_device_number(text: str) -> tuple[int, int]:
    """Give major and minor of '254:0'. Raises ValueError if the text says something else."""
    major, colon, minor = text.partition(":")
    if not colon:
        raise ValueError(f"expected MAJOR:MINOR, found {_shown(text)}")
    return parse_count(major), parse_count(minor)


def parse_name(text: str) -> str | None:
    """Give a serial number or a model without its padding; None if nothing is left.

    Vendors pad with spaces, on either side, and with NULs (SPC-4, 4.3.1; NVMe 2.0, figure 275).
    No standard has room for more than 252 characters (SPC-4, 7.8.15); what is longer is cut, for
    a Prometheus that bounds the length of labels drops the whole scrape.
    """
    name = " ".join(text.split())
    if not name.isprintable():
        name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    return name[:LONGEST_NAME].rstrip() or None


def parse_vpd_serial(page: bytes) -> str | None:
    """Give the serial number of a SCSI 'unit serial number' page (SPC-4, 7.8.15).

    Four bytes of header, the page code in the second and the length in the last two; then
    ASCII. None if that is not what the page is.
    """
    if page[1:2] != b"\x80":
        return None
    length = int.from_bytes(page[2:4], "big")
    return parse_name(page[4 : 4 + length].decode("ascii", "replace"))


def _shown(text: str) -> str:
    return repr(text[:40])
