"""The volume behind a disk, by what the kernel and udev say of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.disks.volume import BY_PROVIDER, LOCAL, UNKNOWN, Attributes, Volume, volume_of

UUID = "6ea73b81-555e-4a74-9d2c-0123456789ab"
IDE = "{{0000000{}-000{}-8899-0000-000000000000}}"
SCSI = "{{f8b3781{}-1e82-4818-a1c3-63d806ec15bb}}"
NETWORK = Volume(None, is_local=False)


def volume(key: str) -> Volume:
    return Volume(key, is_local=False)


def by_id(*names: str) -> tuple[str, ...]:
    return ("/dev/disk/by-path/x", *(f"/dev/disk/by-id/{name}" for name in names))


def identified(provider: str | None, name: str = "sdb", **attributes: Any) -> Volume:
    return volume_of(provider, Attributes(name, **attributes))


EBS = "Amazon Elastic Block Store"
INSTANCE_STORE = "Amazon EC2 NVMe Instance Storage"


@pytest.mark.parametrize(
    ("serial", "model", "expected"),
    [
        ("vol0123abc", EBS, volume("vol-0123abc")),
        ("vol-0123abc", EBS, volume("vol-0123abc")),
        ("vol0123abc", None, volume("vol-0123abc")),
        ("volume7", None, UNKNOWN),
        (None, EBS, NETWORK),
        ("AWS1234567890ABCDEF0", INSTANCE_STORE, LOCAL),
        (None, None, UNKNOWN),
    ],
)
def test_aws(serial: str | None, model: str | None, expected: Volume) -> None:
    assert identified("aws", "nvme1n1", serial=serial, model=model) == expected


@pytest.mark.parametrize(
    ("device", "lun", "expected"),
    [
        (IDE.format(0, 0), 0, volume("os")),
        (IDE.format(0, 1), 0, LOCAL),
        (SCSI.format("a"), 0, volume("os")),
        (SCSI.format("a"), 1, LOCAL),
        (SCSI.format("a"), 2, UNKNOWN),
        (SCSI.format("b"), 0, volume("0")),
        (SCSI.format("b").upper(), 63, volume("63")),
        (SCSI.format("c"), 5, volume("5")),
        (SCSI.format("d"), 12, volume("12")),
        (SCSI.format("e"), 1, UNKNOWN),
        ("{1d6a2ac5-9b0f-4a4b-8d6c-0a1b2c3d4e5f}", 0, UNKNOWN),
        (None, 0, UNKNOWN),
        (SCSI.format("b"), None, UNKNOWN),
    ],
)
def test_azure_scsi(device: str | None, lun: int | None, expected: Volume) -> None:
    address = None if lun is None else f"1:0:0:{lun}"
    disk: dict[str, Any] = {
        "model": "Virtual Disk",
        "scsi_address": address,
        "vmbus_device": device,
    }
    assert identified("azure", **disk) == expected
    assert identified("azure", **disk | {"model": "Other"}) == UNKNOWN


@pytest.mark.parametrize(
    ("model", "nsid", "expected"),
    [
        ("MSFT NVMe Accelerator v1.0", "1", volume("os")),
        ("MSFT NVMe Accelerator v1.0", "2", volume("0")),
        ("MSFT NVMe Accelerator v1.0", "17", volume("15")),
        ("MSFT NVMe Accelerator v1.0", "0", NETWORK),
        ("MSFT NVMe Accelerator v1.0", "x", NETWORK),
        ("MSFT NVMe Accelerator v1.0", None, NETWORK),
        ("Microsoft NVMe Direct Disk", "1", LOCAL),
        ("Microsoft NVMe Direct Disk v2", "1", LOCAL),
        ("Other", "1", UNKNOWN),
    ],
)
def test_azure_nvme(model: str, nsid: str | None, expected: Volume) -> None:
    assert identified("azure", "nvme0n2", model=model, nsid=nsid) == expected


PD = "PersistentDisk"
NVME_PD = "nvme_card-pd"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"model": PD, "serial": "db"}, volume("db")),
        ({"model": PD, "links": by_id("google-db")}, volume("db")),
        ({"model": PD, "links": by_id("scsi-0Google_PersistentDisk_db")}, volume("db")),
        ({"model": PD, "serial": "db", "links": by_id("google-other")}, NETWORK),
        ({"model": PD}, NETWORK),
        ({"model": NVME_PD, "serial": NVME_PD, "links": by_id("google-db")}, volume("db")),
        ({"model": NVME_PD, "serial": NVME_PD, "udev_serial": "db"}, volume("db")),
        (
            {
                "model": NVME_PD,
                "serial": NVME_PD,
                "udev_serial": NVME_PD,
                "links": by_id(f"google-{NVME_PD}"),
            },
            NETWORK,
        ),
        ({"model": "nvme_card", "links": by_id("google-local-nvme-ssd-0")}, LOCAL),
        ({"model": "nvme_card3"}, LOCAL),
        ({"model": "EphemeralDisk", "serial": "local-ssd-0"}, LOCAL),
        ({"model": "QEMU HARDDISK", "serial": "db"}, UNKNOWN),
        ({}, UNKNOWN),
    ],
)
def test_google(attributes: dict[str, Any], expected: Volume) -> None:
    assert identified("gcp", **attributes) == expected


VIRTIO = [
    ("yandex", "vda", "fhm1dn62tm5dnaspeh8n", volume("fhm1dn62tm5dnaspeh8n")),
    ("yandex", "vdb", "pg-data", volume("pg-data")),
    ("yandex", "vdc", "nvme-disk-0", LOCAL),
    ("yandex", "vdd", None, UNKNOWN),
    ("yandex", "sda", "fhm1dn62tm5dnaspeh8n", UNKNOWN),
    ("openstack", "vdb", UUID[:20], volume(UUID[:20])),
    ("vk", "vdb", UUID[:20], volume(UUID[:20])),
    ("vk", "sdb", UUID, volume(UUID)),
    ("openstack", "vda", None, UNKNOWN),
    ("openstack", "vda", "drive-virtio-disk0", UNKNOWN),
    ("huawei", "vdb", UUID[:20].upper(), volume(UUID[:20])),
    ("exoscale", "vdb", UUID[:20], volume(UUID[:20])),
    ("exoscale", "vdb", UUID[:21], UNKNOWN),
    ("alibaba", "vdb", "bp1bcfmvsobfauvxb3ow", volume("d-bp1bcfmvsobfauvxb3ow")),
    ("alibaba", "vdb", "short", UNKNOWN),
    ("alibaba", "nvme1n1", "bp1bcfmvsobfauvxb3ow", UNKNOWN),
    ("tencent", "vdb", "disk-780nl2of", volume("disk-780nl2of")),
    ("tencent", "vdb", "something", UNKNOWN),
    ("ibm", "vdb", "0717-3f5ca8a9-1b2c-4", UNKNOWN),
    (None, "vdb", UUID, UNKNOWN),
]


@pytest.mark.parametrize(("provider", "name", "serial", "expected"), VIRTIO)
def test_serial_numbers(
    provider: str | None, name: str, serial: str | None, expected: Volume
) -> None:
    assert identified(provider, name, serial=serial) == expected


IQN = "iqn.2015-12.com.oracleiaas:a0b1c2d3"


@pytest.mark.parametrize(
    ("provider", "attributes", "expected"),
    [
        ("hetzner", {"links": by_id("scsi-0HC_Volume_101330357")}, volume("101330357")),
        ("hetzner", {"model": "Volume", "serial": "101330357"}, volume("101330357")),
        ("hetzner", {"model": "Volume"}, UNKNOWN),
        (
            "alibaba",
            {"serial": "bp1bcfmvsobfauvxb3ow", "model": "Alibaba Cloud Elastic Block Storage"},
            volume("d-bp1bcfmvsobfauvxb3ow"),
        ),
        ("hetzner", {"model": "QEMU HARDDISK", "serial": "drive-scsi0-0-0-0"}, UNKNOWN),
        ("digitalocean", {"links": by_id("scsi-0DO_Volume_pg-data")}, volume("pg-data")),
        ("digitalocean", {"links": by_id("scsi-0DO_Volume_a", "scsi-0DO_Volume_b")}, UNKNOWN),
        ("scaleway", {"links": by_id(f"scsi-0SCW_sbs_volume-{UUID}")}, volume(UUID)),
        ("scaleway", {"links": by_id(f"scsi-0SCW_b_ssd_volume-{UUID}")}, volume(UUID)),
        ("scaleway", {"serial": f"volume-{UUID}"}, volume(UUID)),
        ("scaleway", {"serial": "volume-x"}, UNKNOWN),
        ("oracle", {"links": ("/dev/oracleoci/oraclevdb",)}, volume("oraclevdb")),
        (
            "oracle",
            {"links": (f"/dev/disk/by-path/ip-169.254.2.2:3260-iscsi-{IQN}-lun-1",)},
            volume(IQN),
        ),
        ("oracle", {"links": ("/dev/disk/by-path/pci-0000:00:04.0-scsi-0:0:0:2",)}, UNKNOWN),
    ],
)
def test_links_and_models(provider: str, attributes: dict[str, Any], expected: Volume) -> None:
    assert identified(provider, **attributes) == expected


TEXT = st.one_of(st.none(), st.text(max_size=40))
PROVIDERS = st.sampled_from([*BY_PROVIDER, "unheard-of"])
MODELS = st.sampled_from(["Virtual Disk", PD, NVME_PD, EBS, "Volume", None])
LINKS = st.lists(
    st.sampled_from(["scsi-0HC_Volume_", "google-", "scsi-0SCW_"]).flatmap(
        lambda prefix: st.text(max_size=9).map(lambda text: f"/dev/disk/by-id/{prefix}{text}")
    ),
    max_size=3,
).map(tuple)


@given(PROVIDERS, st.builds(Attributes, st.text(), TEXT, MODELS, LINKS, TEXT, TEXT, TEXT, TEXT))
def test_any_attributes_give_a_key_or_none(provider: str, disk: Attributes) -> None:
    found = volume_of(provider, disk)
    assert found.key != ""
    assert found.key is None or found.is_local is False
