"""Which disks are monitored, and which terms apply to them."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB
from disksla.kernel.disks.disk import Disk
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.derive import derive_limits
from disksla.promise.catalogue.limits import NO_LIMITS
from disksla.promise.catalogue.terms import Catalog
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.promise.configuration.found_terms import find_terms
from disksla.promise.configuration.match_index import MatchIndex, matches
from disksla.promise.configuration.matching import assign, is_monitored, why_not_monitored
from disksla.promise.configuration.settings import (
    DevicePattern,
    DiscoverySettings,
    DiskEntry,
    Settings,
)
from disksla.promise.disk_entry import DiskMatch

CATALOG = load_catalog()
VOLUME = "6ea73b81-555e-4a74-9d2c-0123456789ab"


def a_disk(name: str = "vda", **fields: object) -> Disk:
    return Disk(name, 254, 0, **{"size_bytes": 100 * GIB, **fields})  # type: ignore[arg-type]


def settings_with_entries(*entries: DiskEntry) -> Settings:
    return Settings(disks=entries)


@pytest.mark.parametrize(
    ("disk", "why"),
    [
        (a_disk("vda"), None),
        (a_disk("nvme0n1"), None),
        (a_disk("nbd0"), None),
        (a_disk("srx"), None),
        (a_disk("fdisk"), None),
        (a_disk("vda1", partition_of="vda"), "partition of vda"),
        (a_disk("nvme0c0n1", hidden=True), "path of a multipath disk"),
        (a_disk("dm-0", slaves=("vda", "vdb")), "stacked on vda, vdb"),
        (a_disk("nbd1", size_bytes=0), "empty"),
        (a_disk("loop3"), "loop device"),
        (a_disk("ram0"), "memory"),
        (a_disk("zram0"), "memory"),
        (a_disk("sr0"), "optical drive"),
        (a_disk("fd0"), "floppy drive"),
    ],
)
def test_why_unwatched_by_default(disk: Disk, why: str | None) -> None:
    assert why_not_monitored(disk, Settings()) == why


@pytest.mark.parametrize(
    ("include", "exclude", "name", "why"),
    [
        (("^loop[0-3]$",), (), "loop3", None),
        (("^loop[0-3]$",), (), "loop30", "not in discovery.include"),
        (("^loop[0-3]$",), (), "vda", "not in discovery.include"),
        (("^vd",), ("^sd", "b$"), "vda", None),
        (("^vd",), ("^sd", "b$"), "vdb", "discovery.exclude[1]"),
        ((), ("d",), "vda", "discovery.exclude[0]"),
    ],
)
def test_discovery(
    include: tuple[str, ...], exclude: tuple[str, ...], name: str, why: str | None
) -> None:
    included, excluded = (tuple(map(DevicePattern, each)) for each in (include, exclude))
    settings = Settings(discovery=DiscoverySettings(include=included, exclude=excluded))
    assert why_not_monitored(a_disk(name), settings) == why
    assert is_monitored(a_disk(name), settings) == (why is None)


def test_entry_wins_over_exclude() -> None:
    entry = DiskEntry(match=DiskMatch(device="loop3"), terms="vk.ceph-ssd")
    settings = Settings(
        discovery=DiscoverySettings(exclude=(DevicePattern("loop"),)), disks=(entry,)
    )
    assert is_monitored(a_disk("loop3", size_bytes=0), settings)
    assert not is_monitored(a_disk("loop4"), settings)


@pytest.mark.parametrize(
    ("match", "fields"),
    [
        (DiskMatch(device="vda"), {}),
        (DiskMatch(serial=VOLUME), {"serial": VOLUME}),
        (DiskMatch(serial=VOLUME), {"serial": VOLUME[:20]}),
        (DiskMatch(serial=VOLUME[:20]), {"serial": VOLUME}),
        (DiskMatch(serial="vol-0a1b2c"), {"serial": "vol0a1b2c"}),
        (DiskMatch(serial="vol0a1b2c"), {"serial": "vol-0a1b2c"}),
        (DiskMatch(volume="vol-0a1b2c"), {"volume": "vol-0a1b2c"}),
        (DiskMatch(volume=VOLUME), {"volume": VOLUME[:20]}),
        (DiskMatch(volume=VOLUME[:20]), {"name": "sda", "volume": VOLUME}),
        (DiskMatch(volume="a-database-that-is-long"), {"volume": "a-database-that-is-l"}),
        (DiskMatch(volume="0"), {"name": "sda", "volume": "0"}),
        (DiskMatch(wwn="0x5000c500a1b2c3d4"), {"wwn": "naa.5000c500a1b2c3d4"}),
        (DiskMatch(wwn="35000c500a1b2c3d4"), {"wwn": "naa.5000c500a1b2c3d4"}),
        (DiskMatch(wwn="eui.0025388b710c37a5"), {"wwn": "eui.0025388b710c37a5"}),
        (DiskMatch(model="QEMU HARDDISK"), {"model": "QEMU HARDDISK"}),
        (DiskMatch(mountpoint="/data"), {"mount_points": ("/", "/data")}),
        (DiskMatch(by_id="virtio-data"), {"by_id": ("virtio-data",)}),
        (DiskMatch(by_id="disk/azure/lun0"), {"links": ("disk/azure/lun0",)}),
        (DiskMatch(device="vg-pg"), {"name": "dm-0", "by_id": ("dm-name-vg-pg",)}),
        (DiskMatch(device="mapper/vg-pg"), {"name": "dm-0", "by_id": ("dm-name-vg-pg",)}),
        (DiskMatch(device="vg/pg"), {"name": "dm-0", "links": ("vg/pg",)}),
        (DiskMatch(volume="vol0a1b2c"), {"volume": "vol-0a1b2c"}),
    ],
)
def test_match_by_each_key(match: DiskMatch, fields: dict[str, object]) -> None:
    assert matches(match, a_disk(**fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("match", "fields"),
    [
        (DiskMatch(device="vda"), {"name": "vda1"}),
        (DiskMatch(serial=VOLUME), {}),
        (DiskMatch(serial=VOLUME), {"serial": VOLUME[:19]}),
        (DiskMatch(serial=VOLUME), {"serial": "6ea73b81-555e-4a74-8"}),
        (DiskMatch(serial=VOLUME[:21]), {"serial": VOLUME}),
        (DiskMatch(serial="vol-x"), {"serial": "volx"}),
        (DiskMatch(volume=VOLUME), {"serial": VOLUME}),
        (DiskMatch(volume=VOLUME), {"volume": VOLUME[:19]}),
        (DiskMatch(volume="pg-data"), {"volume": "pg-data-2"}),
        (
            DiskMatch(volume="a-database-that-is-l"),
            {"name": "sda", "volume": "a-database-that-is-long"},
        ),
        (DiskMatch(wwn="0x5000c500a1b2c3d4"), {"wwn": "naa.5000c500a1b2c3d5"}),
        (DiskMatch(wwn="naa.3000c500a1b2c3d4"), {"wwn": "naa.000c500a1b2c3d4"}),
        (DiskMatch(wwn="0x5000c500a1b2c3d4"), {}),
        (DiskMatch(model="QEMU"), {"model": "QEMU HARDDISK"}),
        (DiskMatch(mountpoint="/dat"), {"mount_points": ("/", "/data")}),
        (DiskMatch(by_id="virtio-data"), {"by_id": ("virtio-data2",)}),
        (DiskMatch(device="vda", serial="a"), {"serial": "b"}),
        (DiskMatch(device="vdb", serial="a"), {"serial": "a"}),
    ],
)
def test_match_requires_all_keys(match: DiskMatch, fields: dict[str, object]) -> None:
    assert not matches(match, a_disk(**fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields", [{"partition_of": "vda"}, {"slaves": ("vda",)}, {"hidden": True}]
)
def test_stacked_device_matches_only_by_own_name(fields: dict[str, object]) -> None:
    disk = a_disk(
        "other",
        serial="s",
        volume="v",
        wwn="w",
        model="m",
        mount_points=("/data",),
        by_id=("dm-name-data",),
        **fields,
    )
    assert not matches(DiskMatch(serial="s", wwn="w", model="m", mountpoint="/data"), disk)
    assert not matches(DiskMatch(volume="v"), disk)
    assert matches(DiskMatch(device="other"), disk)
    assert matches(DiskMatch(by_id="dm-name-data", mountpoint="/data"), disk)


def test_assign_catalog_terms() -> None:
    entry = DiskEntry(match=DiskMatch(serial="s"), terms="vk.ceph-ssd", size=500 * GIB)
    other = DiskEntry(match=DiskMatch(device="vdb"), terms="vk.ceph-hdd")
    assignment = assign(a_disk(serial="s"), settings_with_entries(other, entry), CATALOG)
    assert assignment.terms == "vk.ceph-ssd"
    assert assignment.provider == "vk"
    assert assignment.reason == "disks[1] of the configuration matches serial s"
    assert assignment.size_bytes == 500 * GIB
    assert assignment.limits == derive_limits(CATALOG["vk.ceph-ssd"], 500 * GIB)


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"terms": "aws.gp3", "iops": 90000.0}, "90000 IOPS of aws.gp3: above what AWS sells"),
        ({"terms": "aws.st1"}, "found 100 GiB for aws.st1; expected 125 GiB to 16 TiB"),
        ({"terms": "gcp.pd-ssd"}, "other disks of this type share its limits"),
    ],
)
def test_assign_names_what_the_catalogue_does_not_expect(
    fields: dict[str, Any], note: str
) -> None:
    entry = DiskEntry(match=DiskMatch(device="vda"), **fields)
    assignment = assign(a_disk(), settings_with_entries(entry), CATALOG)
    assert f"matches device vda; {note}" in assignment.reason
    assert assignment.limits != NO_LIMITS


@pytest.mark.parametrize(
    ("fields", "read_iops"),
    [
        ({"terms": "azure.premium-ssd", "options": {"tier": "P30"}}, 5000),
        ({"terms": "vk.ceph-ssd"}, 3000),  # by the kernel's size
        ({"terms": SumTerms(iops=300.0)}, 300),
    ],
)
def test_assign_without_a_size(fields: dict[str, Any], read_iops: float) -> None:
    entry = DiskEntry(match=DiskMatch(device="vda"), **fields)
    assignment = assign(a_disk(), settings_with_entries(entry), CATALOG)
    assert assignment.size_bytes == 100 * GIB
    assert assignment.limits.rates.read_iops == read_iops


def test_first_matching_entry_is_found() -> None:
    first = DiskEntry(match=DiskMatch(model="m"), terms="vk.ceph-ssd")
    second = DiskEntry(match=DiskMatch(device="vda"), terms="vk.ceph-hdd")
    settings = settings_with_entries(first, second)
    place = "disks[{}] of the configuration"
    assert find_terms(a_disk(model="m"), settings, ()) == (first, place.format(0), None)
    assert find_terms(a_disk(), settings, ()) == (second, place.format(1), None)


def test_assign_custom_terms() -> None:
    entry = DiskEntry(match=DiskMatch(device="vda", model="m"), terms=SumTerms(iops=300.0))
    assignment = assign(a_disk(model="m"), settings_with_entries(entry), CATALOG)
    assert assignment.terms == "custom"
    assert assignment.reason == "disks[0] of the configuration matches device vda and model m"


@pytest.mark.parametrize("rotational", [True, False, None])
def test_disk_without_entry_is_of_unknown_type(rotational: bool | None) -> None:
    assignment = assign(a_disk(rotational=rotational), Settings(), CATALOG)
    assert (assignment.terms, assignment.provider) == ("unknown", "unknown")
    assert (assignment.title, assignment.source) == ("unknown type", "none")
    assert assignment.reason == "no entry of the configuration or of terms.d matches"
    assert assignment.limits == NO_LIMITS


def test_file_storage_is_no_terms_of_a_block_device() -> None:
    entry = DiskEntry(match=DiskMatch(device="vda"), terms="yandex.filestore-ssd")
    assignment = assign(a_disk(), settings_with_entries(entry), CATALOG)
    assert assignment.limits == NO_LIMITS
    assert assignment.problem is not None
    assert assignment.problem.endswith("a file storage is no block device")


EFS = "fs-0123456789abcdef0.efs.eu-west-1.amazonaws.com:/"
MOUNT = Disk(
    EFS, 0, 50, 0, kind="nfs", volume="fs-0123456789abcdef0", mount_points=("/srv/files",)
)


@pytest.mark.parametrize(
    "match",
    [
        DiskMatch(device=EFS),
        DiskMatch(mountpoint="/srv/files"),
        DiskMatch(volume="fs-0123456789abcdef0"),
    ],
)
def test_mount_is_matched_by_its_name_its_mount_point_and_its_storage(match: DiskMatch) -> None:
    entry = DiskEntry(match=match, terms="aws.efs", size=100 * GIB)
    assignment = assign(MOUNT, settings_with_entries(entry), CATALOG)
    assert (assignment.terms, assignment.problem) == ("aws.efs", None)
    assert assignment.limits.shared_by == "all clients of the file system"
    assert assignment.limits.client is not None


def test_what_is_not_known_of_a_mount_is_shared_nevertheless() -> None:
    without = assign(MOUNT, Settings(), CATALOG)
    assert (without.terms, without.limits.shared_by) == ("unknown", "all clients")
    entry = DiskEntry(match=DiskMatch(device=EFS), terms="yandex.filestore-ssd", size=GIB)
    unlimited = assign(MOUNT, settings_with_entries(entry), CATALOG)
    assert (unlimited.problem, unlimited.limits.shared_by) == (None, "all clients")


def test_mounts_are_monitored_and_can_be_excluded() -> None:
    assert is_monitored(MOUNT, Settings())
    exclude = DiscoverySettings(exclude=(DevicePattern(":/"),))
    assert why_not_monitored(MOUNT, Settings(discovery=exclude)) == "discovery.exclude[0]"


@pytest.mark.parametrize(("catalog", "why"), [(CATALOG, "IOPS"), (Catalog([]), "unknown terms")])
def test_assign_without_limits_gives_reason(catalog: Catalog, why: str) -> None:
    entry = DiskEntry(match=DiskMatch(device="vda"), terms="vk.ceph-ssd", iops=5000.0)
    assignment = assign(a_disk(), settings_with_entries(entry), catalog)
    assert assignment.terms == "vk.ceph-ssd"
    assert assignment.limits == NO_LIMITS
    assert re.search(f"but there are no limits: .*{why}.*vk.ceph-ssd", assignment.reason)


def test_local_disk_is_of_unknown_type_and_the_reason_names_it() -> None:
    local = assign(a_disk("nvme1n1", is_local=True), Settings(), CATALOG)
    other = assign(a_disk("nvme1n1", is_local=False), Settings(), CATALOG)
    assert (local.terms, local.limits) == (other.terms, other.limits)
    assert local.reason == f"{other.reason}; it is a local disk of the host, not a volume"


words = st.sampled_from(["vda", "vda1", "loop3", "dm-0", "s", VOLUME, VOLUME[:20], "/", ""])
some_disks = st.builds(
    Disk,
    name=words,
    major=st.just(254),
    minor=st.integers(0, 9),
    size_bytes=st.integers(0, 2**60),
    serial=st.none() | words,
    volume=st.none() | words,
    is_local=st.none() | st.booleans(),
    wwn=st.none() | words,
    model=st.none() | words,
    rotational=st.none() | st.booleans(),
    hidden=st.booleans(),
    partition_of=st.none() | words,
    mount_points=st.lists(words, max_size=2).map(tuple),
    by_id=st.lists(words, max_size=2).map(tuple),
    slaves=st.lists(words, max_size=2).map(tuple),
)
some_entries = st.builds(
    DiskEntry,
    match=st.dictionaries(
        st.sampled_from(["device", "serial", "volume", "wwn", "model", "mountpoint", "by_id"]),
        words,
        min_size=1,
    ).map(lambda keys: DiskMatch(**keys)),
    terms=st.sampled_from([row.id for row in CATALOG.rows]) | st.just(SumTerms(iops=300.0)),
    size=st.none() | st.integers(1, 2**60) | st.sampled_from(["300GB", "1.5TB"]),
    iops=st.none(),
)
some_settings = st.builds(
    Settings,
    disks=st.lists(some_entries, max_size=3).map(tuple),
    discovery=st.builds(
        DiscoverySettings,
        include=st.lists(st.sampled_from([DevicePattern("^vd"), DevicePattern("loop")])).map(
            tuple
        ),
        exclude=st.lists(st.sampled_from([DevicePattern("1$"), DevicePattern("loop")])).map(tuple),
    ),
)


@given(some_disks, some_settings)
def test_assign_any_disk_and_settings(disk: Disk, settings: Settings) -> None:
    assignment = assign(disk, settings, CATALOG)
    found = find_terms(disk, settings, ())
    assert assignment.reason.startswith(
        "no entry of the configuration" if found is None else found.place
    )
    assert is_monitored(disk, settings) or found is None


@given(some_disks, some_settings)
def test_excluded_disk_is_monitored_only_by_entry(disk: Disk, settings: Settings) -> None:
    excluded = any(regex.is_in(disk.name) for regex in settings.discovery.exclude)
    if excluded:
        assert is_monitored(disk, settings) == (find_terms(disk, settings, ()) is not None)


@given(st.lists(some_disks, max_size=4, unique_by=lambda disk: disk.name), some_settings)
def test_an_index_finds_what_each_disk_matches_alone(
    disks: list[Disk], settings: Settings
) -> None:
    index = MatchIndex(disks)
    for entry in settings.disks:
        alone = {disk.name for disk in disks if matches(entry.match, disk)}
        assert set(index.matching(entry.match)) == alone
