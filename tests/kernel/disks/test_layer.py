"""How devices are made of others; what is not here is in the machine tests/hosts/stacked-6.1."""

import pytest

from disksla.kernel.disks.layer import Below, Layer, dm_layer, layer_of

KIB = 1024


@pytest.mark.parametrize(
    ("level", "layout", "members", "expected"),
    [
        ("raid0", "", ["sda", None], ("unknown", "RAID 0 with a member missing", 1)),
        ("raid1", "", ["sda", None], ("mirrored", "RAID 1", 1)),
        ("raid10", "513", ["sda", "sdb"], ("striped", "RAID 10", 2)),
        ("raid10", "259", ["sda", "sdb", "sdc"], ("striped", "RAID 10", 3)),
        ("linear", "", ["sda", "sdb"], ("linear", "md linear", 1)),
        ("raid6", "2", ["sda", "sdb", "sdc", "sdd"], ("unknown", "RAID 6", 1)),
    ],
)
def test_arrays(
    level: str, layout: str, members: list[str | None], expected: tuple[str, str, int]
) -> None:
    files = {"md/level": level, "md/layout": layout, "md/raid_disks": str(len(members))}
    links = {f"md/rd{slot}": each and f"dev-{each}" for slot, each in enumerate(members)}
    layer = layer_of(("sda", "sdb"), files.get, links.get)
    assert layer is not None
    assert (layer.how, layer.title, layer.copies) == expected
    assert layer.members == tuple(filter(None, members))


def lvm(*below: Below, minimum: int = 512, optimal: int = 0, size: int = 100) -> Layer | None:
    return dm_layer(Below("", size, optimal, "vg-data", "LVM-x"), minimum, below)


RAID_CARD = 256 * KIB  # optimal_io_size of a volume of a RAID controller with four disks


@pytest.mark.parametrize(
    ("layer", "how", "members"),
    [
        (lvm(Below("sda", 1, RAID_CARD), Below("sdb", 1, RAID_CARD), optimal=RAID_CARD),
         "linear", "sda sdb"),
        (lvm(Below("sda", 1, 64), Below("sdb", 1, 96), optimal=192), "linear", "sda sdb"),
        (lvm(Below("sda", 1, RAID_CARD), Below("sdb"), minimum=4 * KIB, optimal=8 * KIB),
         "striped", "sda sdb"),
        (lvm(Below("sda", 1, 8 * KIB), Below("sdb", 1, 8 * KIB), minimum=4 * KIB, optimal=8 * KIB),
         "unknown", "sda sdb"),
        (lvm(Below("sda"), Below("sdb"), Below("sdc"), minimum=4 * KIB, optimal=8 * KIB),
         "unknown", "sda sdb sdc"),
        (lvm(Below("dm-1", 9, 0, "vg-pool_tmeta"), Below("dm-2", 99, 0, "vg-pool_tdata")),
         "linear", "dm-2"),
        (lvm(Below("dm-1", 9, 0, "vg-fast_cpool", "LVM-y"), Below("dm-2", 9, 0, "vg-x", "LVM-z")),
         "unknown", "dm-1 dm-2"),
        (lvm(*(Below(f"dm-{n}", 50, 0, f"vg-r_rimage_{n}") for n in range(3))),
         "unknown", "dm-0 dm-1 dm-2"),
        (lvm(*(Below(f"dm-{n}", 50, 0, f"vg-r_rimage_{n}") for n in range(2))),
         "striped", "dm-0 dm-1"),
        (lvm(Below("dm-0", 50, 0, "vg-r_mimage_0"), Below("dm-1", 60, 0, "vg-r_mimage_1")),
         "unknown", "dm-0 dm-1"),
        (dm_layer(Below("", dm_uuid="mpath-3600"), 512, [Below("sda"), Below("sdb")]),
         "linear", "sda sdb"),
    ],
)  # fmt: skip
def test_logical_volumes(layer: Layer | None, how: str, members: str) -> None:
    assert layer is not None
    assert (layer.how, " ".join(layer.members)) == (how, members)


def test_devices_that_are_made_of_no_other() -> None:
    files = {"md/level": "raid0", "md/raid_disks": "2"}
    assert layer_of((), files.get, lambda _: "dev-sda") is None
    assert layer_of(("sda",), files.get, lambda _: None) is None
    assert layer_of(("sda",), {"bcache/state": "1"}.get, lambda _: None) is None
