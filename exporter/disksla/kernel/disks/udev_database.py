r"""The udev database and sysfs: parse entries and attributes, and decode what udev encodes.

The format is private to systemd (src/libsystemd/sd-device/device-private.c), but stable since 2009
and read by node_exporter too. There is one file per device, with a letter and a colon before each
value: E:KEY=VALUE for properties, S:NAME for links in /dev.
"""

import re
from collections.abc import Mapping

from disksla.base.text import LONGEST_LABEL_VALUE
from disksla.kernel.procfs import SECTOR_BYTES

_ENCODED = re.compile(r"\\x([0-9a-fA-F]{2})")
_BY_ID = "disk/by-id/"


def parse_udev_data(text: str) -> dict[str, str]:
    """Return the properties of one entry, with its links in DEVLINKS as in libudev."""
    properties: dict[str, str] = {}
    links: list[str] = []
    for line in text.split("\n"):
        letter, colon, value = line.partition(":")
        if colon and letter == "S":
            links.append(f"/dev/{value}")
        elif colon and letter == "E":
            key, equals, content = value.partition("=")
            if equals:
                properties[key] = content
    if links:
        properties["DEVLINKS"] = " ".join(links)
    return properties


def links_of(properties: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of a device in /dev/disk/by-id, and its other links in /dev, both sorted.

    The others are without /dev/, such as disk/azure/scsi1/lun0. The sequence number is no lasting
    name.
    """
    links = {
        link.removeprefix("/dev/")
        for link in properties.get("DEVLINKS", "").split(" ")
        if link.startswith("/dev/") and not link.startswith("/dev/disk/by-diskseq/")
    }
    by_id = {link for link in links if link.startswith(_BY_ID)}
    return tuple(sorted(each.removeprefix(_BY_ID) for each in by_id)), tuple(sorted(links - by_id))


def decode_property(encoded: str) -> str:
    r"""Decode the value of a property whose name ends in _ENC: '\x20' is a space."""
    return _ENCODED.sub(lambda match: chr(int(match[1], 16)), encoded)


LONGEST_NAME = LONGEST_LABEL_VALUE  # longest serial number or model, in characters

_TOO_MANY = 2**64
_TOO_LARGE = 2**63


def parse_count(text: str) -> int:
    """Return the number in an attribute. Raise ValueError unless it is one within 64 bits."""
    digits = text.strip(" \n")
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"found {_quoted(text)}; expected a whole number")
    count = int(digits)
    if count >= _TOO_MANY:
        raise ValueError(f"found {_quoted(text)}; expected a number within 64 bits")
    return count


def parse_sectors(text: str) -> int:
    """Return a number of sectors in bytes. Raise ValueError from 8 EiB on, the largest offset."""
    size_bytes = parse_count(text) * SECTOR_BYTES
    if size_bytes >= _TOO_LARGE:
        raise ValueError(f"found {_quoted(text)} sectors; expected less than 8 EiB")
    return size_bytes


def parse_device_number(text: str) -> tuple[int, int]:
    """Return major and minor number of '254:0'. Raise ValueError for anything else."""
    major, colon, minor = text.partition(":")
    if not colon:
        raise ValueError(f"found {_quoted(text)}; expected MAJOR:MINOR")
    return parse_count(major), parse_count(minor)


def parse_name(text: str) -> str | None:
    """Return a serial number or a model without padding; None if nothing is left.

    Vendors pad with spaces, on either side, and with NULs (SPC-4, 4.3.1; NVMe 2.0, figure 275).
    No standard allows more than 252 characters (SPC-4, 7.8.15). Longer names are truncated,
    because a Prometheus that limits the length of labels would drop the whole scrape.
    """
    name = " ".join(text.split())
    if not name.isprintable():
        name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    return name[:LONGEST_NAME].rstrip() or None


def parse_vpd_serial(page: bytes) -> str | None:
    """Return the serial number in a SCSI 'unit serial number' page (SPC-4, 7.8.15).

    The page has a header of four bytes, with the page code (0x80) in the second and the length in
    the last two, then ASCII. Return None for another page.
    """
    if page[1:2] != b"\x80":
        return None
    length = int.from_bytes(page[2:4], "big")
    return parse_name(page[4 : 4 + length].decode("ascii", "replace"))


def _quoted(text: str) -> str:
    return repr(text[:40])
