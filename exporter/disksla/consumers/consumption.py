"""What consumers used of disks."""

import msgspec


class Consumption(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a consumer used of a disk in one reading."""

    device: str
    consumer: str
    program: str
    requests: float | None
    bytes: float | None
