"""Parsing of sysfs attributes, and of entries of the udev database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.disks import udev_database
from disksla.kernel.disks.udev_database import decode_property, links_of, parse_udev_data


@given(st.integers(0, 2**64 - 1))
def test_parse_count(count: int) -> None:
    assert udev_database.parse_count(f"{count}\n") == count


@pytest.mark.parametrize("text", [str(2**64), "9" * 400, "9" * 5000])
def test_parse_count_rejects_more_than_64_bits(text: str) -> None:
    with pytest.raises(ValueError, match=r"within 64 bits|Exceeds the limit"):
        udev_database.parse_count(text)


@given(st.integers(0, 2**64 - 1))
def test_parse_sectors_below_8_eib(count: int) -> None:
    if count < 2**54:
        assert udev_database.parse_sectors(str(count)) == 512 * count
    else:
        with pytest.raises(ValueError, match="less than 8 EiB"):
            udev_database.parse_sectors(str(count))


@given(st.integers(0, 4095), st.integers(0, 2**20 - 1))
def test_parse_device_number(major: int, minor: int) -> None:
    assert udev_database.parse_device_number(f"{major}:{minor}\n") == (major, minor)


@pytest.mark.parametrize("text", ["", "\n", "-1", "+1", "1_000", "1 2", "1.5", "٣", "0x10"])
def test_parse_count_rejects_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="expected a whole number"):
        udev_database.parse_count(text)


@pytest.mark.parametrize("text", ["", "8", "8:", ":0", "8:0:1", "a:b"])
def test_parse_device_number_rejects_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        udev_database.parse_device_number(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("6ea73b81-555e-4a74-9", "6ea73b81-555e-4a74-9"),
        ("            S3Z1NB0K\n", "S3Z1NB0K"),
        ("Virtual disk    \n", "Virtual disk"),
        ("t10.ATA     Samsung SSD    S3Z1", "t10.ATA Samsung SSD S3Z1"),
        ("ab\0\0\0", "ab"),
        ("\0" * 20, None),
        (" " * 20 + "\n", None),
        ("", None),
        ("x" * 5000, "x" * udev_database.LONGEST_NAME),
        ("x" * (udev_database.LONGEST_NAME - 1) + " y", "x" * (udev_database.LONGEST_NAME - 1)),
    ],
)
def test_parse_name_strips_padding(text: str, name: str | None) -> None:
    assert udev_database.parse_name(text) == name


@given(st.text())
def test_parse_name_is_printable(text: str) -> None:
    name = udev_database.parse_name(text)
    assert name is None or (name.isprintable() and name == udev_database.parse_name(name))


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=200))
def test_parse_vpd_serial(serial: str) -> None:
    header = bytes([0, 0x80]) + len(serial).to_bytes(2, "big")
    assert udev_database.parse_vpd_serial(header + serial.encode() + b"padding") == serial


@given(st.binary())
def test_parse_vpd_serial_accepts_any_page(page: bytes) -> None:
    if page[1:2] != b"\x80":
        assert udev_database.parse_vpd_serial(page) is None
    else:
        udev_database.parse_vpd_serial(page)


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
