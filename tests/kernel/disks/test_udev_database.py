"""Parsing of entries of the udev database."""

from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.disks.udev_database import decode_property, links_of, parse_udev_data

ENTRY = r"""S:disk/by-id/wwn-0x5002538e4028a2b1
S:disk/by-path/pci-0000:00:17.0-ata-1
S:disk/by-id/ata-Samsung_SSD_860_EVO_500GB_S3Z1NB0K
W:1
I:8399206
E:ID_MODEL_ENC=Samsung\x20SSD\x20860\x20EVO\x20500GB
E:ID_FS_LABEL=a=b
E:WITHOUT_VALUE
G:systemd
"""


def test_parse_udev_data_returns_properties_and_links() -> None:
    properties = parse_udev_data(ENTRY)
    assert properties["ID_FS_LABEL"] == "a=b"
    assert decode_property(properties["ID_MODEL_ENC"]) == "Samsung SSD 860 EVO 500GB"
    assert "WITHOUT_VALUE" not in properties
    assert links_of(properties) == (
        ("ata-Samsung_SSD_860_EVO_500GB_S3Z1NB0K", "wwn-0x5002538e4028a2b1"),
        ("disk/by-path/pci-0000:00:17.0-ata-1",),
    )


def test_parse_udev_data_joins_links_as_libudev_does() -> None:
    links = parse_udev_data("S:mapper/vg-db\nS:disk/by-id/dm-name-vg-db\n")
    assert links == {"DEVLINKS": "/dev/mapper/vg-db /dev/disk/by-id/dm-name-vg-db"}


@given(st.text())
def test_parse_udev_data_accepts_any_text(text: str) -> None:
    links_of(parse_udev_data(text))


@given(st.text(st.characters(min_codepoint=0, max_codepoint=255)))
def test_decode_property_reverses_the_encoding(text: str) -> None:
    assert decode_property("".join(f"\\x{ord(letter):02x}" for letter in text)) == text


@given(st.text())
def test_decode_property_accepts_any_text(text: str) -> None:
    assert len(decode_property(text)) <= len(text)
