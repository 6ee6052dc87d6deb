"""What a controller and its one namespace say of themselves (Identify), as bytes.

NVM Express Base Specification 2.0, figures 275 and 97; NVMe over Fabrics asks for some fields.
"""

import struct

SECTOR_BYTES = 512
QUEUE_DEPTH = 128
IDENTIFY_BYTES = 4096
IN_CAPSULE_BYTES = 8192
"""Data of writes that come with the command."""
VERSION = 0x0001_0400
_AMAZON = 0x1D0F
_MOST_DATA_PAGES_LOG2 = 6
_IO_CONTROLLER = 1
_KEEP_ALIVE_UNITS = 10
_SGL = 1 | 1 << 20
_UNIT_BYTES = 16


def controller(serial: str, model: str, name: str, identifier: int, device: str) -> bytes:
    """Return the data of a controller. EBS puts the name of the device among those of vendors."""
    data = bytearray(IDENTIFY_BYTES)

    def put(offset: int, form: str, *values: int | bytes) -> None:
        struct.pack_into(f"<{form}", data, offset, *values)

    put(0, "HH", _AMAZON, _AMAZON)
    put(4, "20s40s8s", _padded(serial, 20), _padded(model, 40), _padded("1.0", 8))
    put(77, "BHI", _MOST_DATA_PAGES_LOG2, identifier, VERSION)
    put(111, "B", _IO_CONTROLLER)
    put(320, "H", _KEEP_ALIVE_UNITS)
    put(512, "BBHI", 0x66, 0x44, QUEUE_DEPTH, 1)
    put(536, "I", _SGL)
    put(768, "256s", name.encode())
    put(1792, "II", (64 + IN_CAPSULE_BYTES) // _UNIT_BYTES, 1)
    put(3072, "32s", _padded(device, 32))
    return bytes(data)


def namespace(size_bytes: int) -> bytes:
    """Return the data of a namespace with sectors of 512 bytes."""
    data = bytearray(IDENTIFY_BYTES)
    sectors = size_bytes // SECTOR_BYTES
    struct.pack_into("<QQQ", data, 0, sectors, sectors, sectors)
    struct.pack_into("<HBB", data, 128, 0, SECTOR_BYTES.bit_length() - 1, 0)
    return bytes(data)


def namespaces(after: int) -> bytes:
    """Return the list of namespaces with numbers above one: namespace 1 is the only one."""
    return struct.pack("<I", 1 if after < 1 else 0).ljust(IDENTIFY_BYTES, b"\0")


def _padded(text: str, size: int) -> bytes:
    return text.encode().ljust(size)
