r"""The udev database: parse its entries, and decode the values that udev encodes.

The format is private to systemd (src/libsystemd/sd-device/device-private.c), but stable since 2009
and read by node_exporter too. There is one file per device, with a letter and a colon before each
value: E:KEY=VALUE for properties, S:NAME for links in /dev.
"""

import re
from collections.abc import Mapping

_ENCODED = re.compile(r"\\x([0-9a-fA-F]{2})")
_BY_ID = "/dev/disk/by-id/"


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


def by_id_names(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of a device in /dev/disk/by-id, sorted."""
    links = properties.get("DEVLINKS", "").split(" ")
    return tuple(sorted({link.removeprefix(_BY_ID) for link in links if link.startswith(_BY_ID)}))


def other_links(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the links to a device in /dev but those in /dev/disk/by-id, sorted.

    They are without /dev/, such as disk/azure/scsi1/lun0. The sequence number is no lasting name.
    """
    links = properties.get("DEVLINKS", "").split(" ")
    return tuple(
        sorted(
            {
                link.removeprefix("/dev/")
                for link in links
                if link.startswith("/dev/")
                and not link.startswith((_BY_ID, "/dev/disk/by-diskseq/"))
            }
        )
    )


def decode_property(encoded: str) -> str:
    r"""Decode the value of a property whose name ends in _ENC: '\x20' is a space."""
    return _ENCODED.sub(lambda match: chr(int(match[1], 16)), encoded)
