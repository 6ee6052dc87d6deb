r"""Entries of the udev database and the encodings that udev uses.

The database is systemd's private format (src/libsystemd/sd-device/device-private.c), stable
since 2009 and read by node_exporter too: one file per device, one letter and a colon before
each value, E:KEY=VALUE for properties and S:name for links below /dev.
"""

import re
from collections.abc import Mapping

_ENCODED = re.compile(r"\\x([0-9a-fA-F]{2})")
_BY_ID = "/dev/disk/by-id/"


def parse_udev_data(text: str) -> dict[str, str]:
    """Give the properties of one entry, with its links under DEVLINKS as libudev gives them."""
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
    """Give the names that a device has under /dev/disk/by-id, sorted."""
    links = properties.get("DEVLINKS", "").split(" ")
    return tuple(sorted({link.removeprefix(_BY_ID) for link in links if link.startswith(_BY_ID)}))


def decode_property(encoded: str) -> str:
    r"""Undo the encoding of properties whose names end in _ENC: '\x20' is a space."""
    return _ENCODED.sub(lambda match: chr(int(match[1], 16)), encoded)
