"""Clouds on the network of a virtual machine: what they answer, and which limits follow.

The answers follow the documents of the providers; benches/clouds has implementations of others.
Sizes and provisioned values are random. Expected limits are written here as the pages of the
providers have them, not computed by the catalogue.
"""

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

from clouds.server import Received, Reply

GIB = 2**30
MIB = 2**20
_SERVER = "5f0d2c9e-1111-4222-8333-444455556666"
_SECRET = "S3CRET"
_VOLUME = "6ea73b81-555e-4a74-9d2c-0123456789ab"


class Limits(NamedTuple):
    """What a disk was promised per second; None is not compared."""

    terms: str
    read_iops: float
    write_iops: float
    read_bytes_per_second: float | None = None


class Disk(NamedTuple):
    """A disk as options of QEMU's device, and what follows from what the cloud says of it."""

    device: str
    serial: str
    size_gib: int
    limits: Limits | None
    """None where QEMU cannot imitate the identity of the volume."""


class Cloud(NamedTuple):
    """A cloud as one of its machines sees it."""

    firmware: tuple[str, ...]
    """DMI, as options of QEMU."""
    api: tuple[str, int]
    """Name and port of the API."""
    answers: Mapping[str, str]
    """Of the metadata service and of the API, by path."""
    disk: Disk
    later: Disk | None = None
    """A disk that is plugged in while the machine runs; the API lists it from the start."""
    machine_type: str = ""
    """Empty where the metadata service does not have it."""
    credentials: str = ""
    """clouds.yaml; empty where the machine itself has credentials."""


def aws(random: Random) -> Cloud:
    """Return a machine with a gp3 volume, and an io2 volume for later."""
    disks = (_ebs(random, "gp3", "0123456789abcdef0"), _ebs(random, "io2", "0fedcba9876543210"))
    keys = {"AccessKeyId": "AKIA", "SecretAccessKey": _SECRET, "Token": "T"}
    volumes = "".join(_ebs_item(disk) for disk in disks)
    about_instance = {
        "instance-id": "i-0123456789abcdef0",
        "instance-type": "m6i.large",
        "placement/region": "eu-central-1",
        "iam/security-credentials/": "disksla",
        "iam/security-credentials/disksla": json.dumps(keys),
    }
    return Cloud(
        ("type=1,manufacturer=Amazon EC2,product=m6i.large", "type=3,asset=Amazon EC2"),
        ("ec2.eu-central-1.amazonaws.com", 443),
        {
            "/latest/api/token": "TOKEN==",
            **{f"/latest/meta-data/{path}": text for path, text in about_instance.items()},
            "/": f"<DescribeVolumesResponse><volumeSet>{volumes}</volumeSet>"
            "</DescribeVolumesResponse>",
        },
        disks[0],
        disks[1],
        "m6i.large",
    )


def _ebs(random: Random, kind: str, number: str) -> Disk:
    """Return a volume whose values are provisioned: they are the limits."""
    iops, mib_per_second = random.randrange(3000, 8000), random.randrange(125, 400)
    bandwidth = mib_per_second * MIB if kind == "gp3" else None
    limits = Limits(f"aws.{kind}", iops, iops, bandwidth)
    return Disk(f"nvme,serial=vol{number}", f"vol{number}", random.randrange(100, 400), limits)


def _ebs_item(disk: Disk) -> str:
    assert disk.limits is not None
    bandwidth = disk.limits.read_bytes_per_second
    throughput = "" if bandwidth is None else f"<throughput>{bandwidth // MIB}</throughput>"
    return (
        f"<item><volumeId>{disk.serial.replace('vol', 'vol-')}</volumeId>"
        f"<size>{disk.size_gib}</size><iops>{disk.limits.read_iops}</iops>{throughput}"
        f"<volumeType>{disk.limits.terms.removeprefix('aws.')}</volumeType><attachmentSet><item>"
        "<instanceId>i-0123456789abcdef0</instanceId></item></attachmentSet></item>"
    )


def azure(random: Random) -> Cloud:
    """Return a machine whose type is known; its disk has no LUN of Hyper-V."""
    size_gib = random.randrange(32, 1024)
    disk = {
        "lun": "0",
        "name": "data",
        "caching": "None",
        "diskSizeGB": str(size_gib),
        "managedDisk": {"id": "/subscriptions/0", "storageAccountType": "Premium_LRS"},
    }
    storage = {"osDisk": {**disk, "name": "os"}, "dataDisks": [disk]}
    metadata = {"vmSize": "Standard_D4s_v5", "location": "westus", "storageProfile": storage}
    return Cloud(
        (
            "type=1,manufacturer=Microsoft Corporation,product=Virtual Machine",
            "type=3,asset=7783-7084-3265-9085-8269-3286-77",
        ),
        ("management.azure.com", 443),
        {"/metadata/instance/compute?api-version=2021-12-13": json.dumps(metadata)},
        Disk("scsi-hd,vendor=Msft,product=Virtual Disk,serial=data", "data", size_gib, None),
        machine_type="Standard_D4s_v5",
    )


def google(random: Random) -> Cloud:
    """Return a machine with a Hyperdisk Balanced, whose values are provisioned."""
    size_gib, iops = random.randrange(100, 400), random.randrange(3000, 8000)
    mib_per_second = random.randrange(140, 300)
    zone = "projects/123/zones/europe-west3-a"
    instance = {
        "name": "db-1",
        "zone": zone,
        "machineType": "projects/123/machineTypes/c3-standard-8",
        "disks": [{"deviceName": "data", "type": "HYPERDISK-BALANCED"}],
    }
    attached = {"deviceName": "data", "type": "PERSISTENT", "source": f"{zone}/disks/data-1"}
    disk = {
        "type": f"{zone}/diskTypes/hyperdisk-balanced",
        "sizeGb": str(size_gib),
        "provisionedIops": str(iops),
        "provisionedThroughput": str(mib_per_second),
    }
    metadata = "/computeMetadata/v1/instance"
    return Cloud(
        ("type=1,manufacturer=Google,product=Google Compute Engine", "type=0,version=Google"),
        ("compute.googleapis.com", 443),
        {
            f"{metadata}/?recursive=true": json.dumps(instance),
            f"{metadata}/service-accounts/default/token": json.dumps({"access_token": _SECRET}),
            f"/compute/v1/{zone}/instances/db-1": json.dumps({"disks": [attached]}),
            f"/compute/v1/{zone}/disks/data-1": json.dumps(disk),
        },
        Disk(
            "scsi-hd,vendor=Google,product=PersistentDisk,serial=data",
            "data",
            size_gib,
            Limits("gcp.hyperdisk-balanced", iops, iops, mib_per_second * MIB),
        ),
        machine_type="c3-standard-8",
    )


def vk(random: Random) -> Cloud:
    """Return a machine with a ceph-ssd volume: 30 reads and 15 writes per second and GiB."""
    size_gib = random.randrange(100, 400)
    name, port = "infra.mail.ru", 35357
    url = f"https://{name}:{port}"
    endpoint = {"interface": "public", "region": "RegionOne", "url": f"{url}/volume/v3/p"}
    services = [{"type": "volumev3", "endpoints": [endpoint]}]
    volume = {
        "id": _VOLUME,
        "size": size_gib,
        "volume_type": "ceph-ssd",
        "attachments": [{"server_id": _SERVER}],
    }
    credential = {"application_credential_id": "id", "application_credential_secret": _SECRET}
    return Cloud(
        ("type=1,manufacturer=OpenStack Foundation,product=OpenStack Nova",),
        (name, port),
        {
            "/openstack/latest/meta_data.json": json.dumps({"uuid": _SERVER}),
            "/v3/auth/tokens": json.dumps({"token": {"catalog": services}}),
            "/volume/v3/p/volumes/detail?limit=1000": json.dumps({"volumes": [volume]}),
        },
        Disk(
            f"virtio-blk-pci,serial={_VOLUME}",
            _VOLUME[:20],
            size_gib,
            Limits("vk.ceph-ssd", 30 * size_gib, 15 * size_gib),
        ),
        credentials=json.dumps(
            {
                "clouds": {
                    "openstack": {
                        "auth_type": "v3applicationcredential",
                        "auth": {"auth_url": f"{url}/v3", **credential},
                    }
                }
            }
        ),
    )


def yandex(random: Random) -> Cloud:
    """Return a machine with network-ssd: 1,000 IOPS for each begun unit of 32 GiB."""
    units = random.randrange(2, 10)
    size_gib = 32 * units - random.randrange(32)
    disk = "fhm1dn62tm5dnaspeh8n"
    metadata = "/computeMetadata/v1/instance"
    attached = {"bootDisk": {"diskId": "boot"}, "secondaryDisks": [{"diskId": disk}]}
    found = {"typeId": "network-ssd", "size": str(size_gib * GIB)}
    return Cloud(
        ("type=1,manufacturer=Yandex,product=xeon-gold-6338",),
        ("compute.api.cloud.yandex.net", 443),
        {
            f"{metadata}/id": "fhm00000000000000001",
            f"{metadata}/service-accounts/default/token": json.dumps({"access_token": _SECRET}),
            "/compute/v1/instances/fhm00000000000000001": json.dumps(attached),
            "/compute/v1/disks/boot": json.dumps(found),
            f"/compute/v1/disks/{disk}": json.dumps(found),
        },
        Disk(
            f"virtio-blk-pci,serial={disk}",
            disk,
            size_gib,
            Limits("yandex.network-ssd", 1000 * units, 1000 * units),
        ),
    )


CLOUDS: Mapping[str, Callable[[Random], Cloud]] = {
    "aws": aws,
    "azure": azure,
    "google": google,
    "vk": vk,
    "yandex": yandex,
}


def answer(cloud: Cloud, request: Received) -> Reply:
    """Return what a cloud answers to a request; it sets the headers of all of them."""
    headers = {"metadata-flavor": "Google", "x-subject-token": _SECRET}
    text = cloud.answers.get(request.path)
    return Reply(404) if text is None else Reply(200, text.encode(), headers)
