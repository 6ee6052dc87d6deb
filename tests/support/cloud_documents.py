"""The documents in which clouds describe the disks of a machine, and which disk a part is of."""

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from disksla.clouds.detection.azure import detect_azure
from disksla.clouds.detection.findings import Detected
from disksla.clouds.detection.google import detect_google
from disksla.clouds.detection.kubernetes import Account, detect_kubernetes
from disksla.clouds.detection.openstack import OpenstackCredentials, detect_openstack
from disksla.clouds.detection.providers import exchanges_of
from disksla.clouds.detection.yandex import detect_yandex
from disksla.clouds.http_client.exchange import Exchanges, Request, Response
from support.exchanges import answered, reply

NOW = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)
Path = tuple[str | int, ...]


class Cloud(NamedTuple):
    """A machine with three disks, or in Kubernetes with two."""

    documents: Mapping[str, Any]
    """By the end of their addresses."""
    detect: Callable[[], Exchanges[Detected]]
    disk_of: Callable[[str, Path], str | None]
    """Which disk a place in a document is about; None for what is not about one disk."""


def run(cloud: Cloud, documents: Mapping[str, Any]) -> Detected:
    """Return what is found where a cloud has these documents, and the machine credentials."""

    def answer(request: Request) -> Response:
        address = request.url.partition("?api-version")[0]
        if address.endswith(("oauth2/token", "default/token")):
            return reply({"access_token": "t"}, headers={"metadata-flavor": "Google"})
        found = next((name for name in documents if address.endswith(name)), None)
        headers = {"metadata-flavor": "Google", "x-subject-token": "t"}
        return reply(status=404) if found is None else reply(documents[found], 200, headers)

    return answered(cloud.detect(), answer)[0]


def _azure_disk(name: str, api_type: str, **values: Any) -> dict[str, Any]:
    path = f"/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/{name}"
    managed = {"id": path, "storageAccountType": api_type}
    return {"diskSizeGB": "1024", "caching": "None", "managedDisk": managed, **values}


def _azure_resource(api_type: str, **properties: Any) -> dict[str, Any]:
    values = {"diskSizeGB": 1024, "diskIOPSReadWrite": 9000, "diskMBpsReadWrite": 400}
    return {"sku": {"name": api_type}, "properties": values | properties}


def _of_azure(document: str, path: Path) -> str | None:
    if document != "compute":
        return document.removeprefix("disks/")
    is_data = path[:2] == ("storageProfile", "dataDisks") and len(path) > 2
    return "os" if path[:2] == ("storageProfile", "osDisk") else str(path[2]) if is_data else None


_THROTTLES = {"opsPerSecondThrottle": "9", "bytesPerSecondThrottle": "9"}
AZURE = Cloud(
    {
        "compute": {
            "azEnvironment": "AzurePublicCloud",
            "vmSize": "Standard_D4s_v5",
            "storageProfile": {
                "osDisk": _azure_disk("os", "Premium_LRS", diffDiskSettings={"option": ""}),
                "dataDisks": [
                    _azure_disk("0", "PremiumV2_LRS", lun="0", vhd={"uri": ""}),
                    _azure_disk("1", "UltraSSD_LRS", lun="1", **_THROTTLES),
                ],
            },
        },
        "disks/os": _azure_resource(
            "Premium_LRS", tier="P4", creationData={"performancePlus": True}
        ),
        "disks/0": _azure_resource("PremiumV2_LRS"),
        "disks/1": _azure_resource("UltraSSD_LRS", burstingEnabled=False),
    },
    lambda: detect_azure(None),
    _of_azure,
)


def _of_google(document: str, path: Path) -> str | None:
    if document.startswith("disks/"):
        return document.removeprefix("disks/")
    is_disk = path[:1] == ("disks",) and len(path) > 1
    return ("boot", "data", "local")[int(path[1])] if is_disk else None


_SOURCE = "https://www.googleapis.com/compute/v1/projects/p/zones/z/disks"
GOOGLE = Cloud(
    {
        "recursive=true": {
            "name": "db-1",
            "zone": "projects/123/zones/europe-west3-a",
            "machineType": "projects/123/machineTypes/n2-standard-8",
            "disks": [
                {"deviceName": "boot", "type": "PERSISTENT-BALANCED"},
                {"deviceName": "data", "type": "HYPERDISK-BALANCED"},
                {"deviceName": "local", "type": "LOCAL-SSD"},
            ],
        },
        "instances/db-1": {
            "disks": [
                {"deviceName": "boot", "type": "PERSISTENT", "source": f"{_SOURCE}/boot"},
                {"deviceName": "data", "type": "PERSISTENT", "source": f"{_SOURCE}/data"},
                {"deviceName": "local", "type": "SCRATCH", "diskSizeGb": "375"},
            ]
        },
        "disks/boot": {"type": "zones/z/diskTypes/pd-balanced", "sizeGb": "100"},
        "disks/data": {
            "type": "zones/z/diskTypes/hyperdisk-balanced",
            "sizeGb": "500",
            "provisionedIops": "6000",
            "provisionedThroughput": "300",
        },
    },
    lambda: detect_google(None),
    _of_google,
)


def _of_yandex(document: str, path: Path) -> str | None:
    if document.startswith("disks/"):
        return document.removeprefix("disks/")
    if path[:1] == ("bootDisk",):
        return "epd0"
    is_disk = path[:1] == ("secondaryDisks",) and len(path) > 1
    return f"epd{1 + int(path[1])}" if is_disk else None


YANDEX = Cloud(
    {
        "instance/id": "epdvm",
        "instances/epdvm": {
            "bootDisk": {"diskId": "epd0", "deviceName": "epd0"},
            "secondaryDisks": [{"diskId": "epd1"}, {"diskId": "epd2", "deviceName": "epd2"}],
        },
        **{f"disks/epd{index}": {"typeId": "network-ssd", "size": "64"} for index in range(3)},
    },
    lambda: detect_yandex(None),
    _of_yandex,
)


def _cinder_volume(name: str, server: str) -> dict[str, Any]:
    attachments = [{"server_id": server, "device": "/dev/vdb"}]
    return {"id": name, "size": 100, "volume_type": "ceph-ssd", "attachments": attachments}


def _of_cinder(document: str, path: Path) -> str | None:
    is_volume = document == "limit=1000" and path[:1] == ("volumes",) and len(path) > 1
    return ("a0", "a1", "a2", "other")[int(path[1])] if is_volume else None


_ENDPOINT = {"interface": "public", "url": "https://cinder", "region": "R1", "region_id": "R1"}
CINDER = Cloud(
    {
        "meta_data.json": {"uuid": "b0", "devices": []},
        "auth/tokens": {
            "token": {
                "catalog": [
                    {"type": "identity", "endpoints": []},
                    {"type": "block-storage", "endpoints": [_ENDPOINT]},
                ]
            }
        },
        "limit=1000": {
            "volumes": [
                *(_cinder_volume(f"a{index}", "b0") for index in range(3)),
                _cinder_volume("c0", "d0"),
            ],
            "volumes_links": [{"rel": "self", "href": "https://cinder/"}],
        },
    },
    lambda: detect_openstack(
        "vk", OpenstackCredentials("https://keystone/v3", "id", "secret", "R1"), None
    ),
    _of_cinder,
)

_EBS = "ebs.csi.aws.com"


def _persistent_volume(handle: str, storage_class: str, **spec: Any) -> dict[str, Any]:
    created: dict[str, Any] = {
        "f:spec": {"f:capacity": {"f:storage": {}}, "f:csi": {"f:driver": {}}}
    }
    return {
        "metadata": {
            "annotations": {"pv.kubernetes.io/provisioned-by": _EBS},
            "managedFields": [{"fieldsV1": created}],
        },
        "spec": {
            "capacity": {"storage": "500Gi"},
            "csi": {"driver": _EBS, "volumeHandle": handle, "volumeAttributes": {"a": "b"}},
            "claimRef": {"namespace": "db", "name": "data-pg-0"},
            "storageClassName": storage_class,
            **spec,
        },
    }


KUBERNETES = Cloud(
    {
        "volumes/a?resourceVersion=0": _persistent_volume(
            "vol-a", "fast", volumeAttributesClassName="quick"
        ),
        "volumes/b?resourceVersion=0": _persistent_volume("vol-b", "slow"),
        "classes/fast?resourceVersion=0": {"parameters": {"type": "gp3"}},
        "classes/slow?resourceVersion=0": {
            "parameters": {"type": "io1", "iopsPerGB": "10"},
            "allowVolumeExpansion": True,
        },
        "classes/quick?resourceVersion=0": {"parameters": {"iops": "5000"}},
    },
    lambda: detect_kubernetes(Account("https://k8s", "t", "/ca"), ["a", "b"], "openstack"),
    lambda document, _: "vol-b" if document.startswith(("volumes/b", "classes/s")) else "vol-a",
)

ORACLE = Cloud(
    {"opc/v2/instance/": {"shape": "VM.Standard.E4.Flex"}},
    lambda: exchanges_of("oracle", now=NOW),
    lambda *_: None,
)

CLOUDS = {
    "azure": AZURE,
    "gcp": GOOGLE,
    "yandex": YANDEX,
    "cinder": CINDER,
    "kubernetes": KUBERNETES,
    "oracle": ORACLE,
}
