"""Volumes of Kubernetes: their classes, their objects, and their mounts."""

import hashlib
import random
import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple

from clouds.apiserver import STORAGE, Cluster

KUBELET = "/var/lib/kubelet"
INLINE = "scratch"
"""Name of an inline volume that a node has mounted: it is in no PersistentVolume."""
VOLUMES = "/api/v1/persistentvolumes"
STORAGE_CLASSES = f"{STORAGE}/storageclasses"
ATTRIBUTES_CLASSES = f"{STORAGE}/volumeattributesclasses"

EBS, PD, AZURE = "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"
CINDER = "cinder.csi.openstack.org"


class Ordered(NamedTuple):
    """A volume as its classes have it, and what detection has to say of it."""

    driver: str
    parameters: dict[str, str]
    terms: dict[str, Any] | None
    """None if they cannot be known."""
    changed: dict[str, str] | None = None
    """Parameters of the VolumeAttributesClass."""
    attributes: dict[str, str] | None = None
    capacity: str = "100Gi"
    is_dynamic: bool = True
    """Its driver created it."""


class Created(NamedTuple):
    """A volume in the cluster."""

    name: str
    handle: str
    ordered: Ordered
    claim: dict[str, str]
    storage_class: str
    attributes_class: str | None

    @property
    def terms(self) -> list[dict[str, Any]]:
        """Its entry of the file of terms."""
        if self.ordered.terms is None:
            return []
        return [{"match": {"volume_handle": self.handle}, **self.ordered.terms}]

    @property
    def described(self) -> dict[str, str]:
        """Its entry of the volumes of the file."""
        return {
            "driver": self.ordered.driver,
            "volume_handle": self.handle,
            "persistent_volume": self.name,
            "claim": self.claim["name"],
            "namespace": self.claim["namespace"],
            "storage_class": self.storage_class,
        }


def special_orders(draw: random.Random) -> list[Ordered]:
    """Return a volume for each rule of the drivers."""
    gib, per_gib = draw.randint(1, 15) * 128, draw.randint(5, 30)
    iops = {"provider": "aws", "api_type": "io2", "iops": gib * per_gib}
    per_size = {"type": "io2", "iopsPerGB": str(per_gib)}
    cached = {"skuName": "Premium_LRS", "cachingMode": "ReadOnly", "enableBursting": "true"}
    premium = {"provider": "azure", "api_type": "Premium_LRS"}
    gp3 = {"provider": "aws", "api_type": "gp3", "iops": 3000, "bandwidth": "125MiB/s"}
    return [
        Ordered(EBS, {}, gp3),
        Ordered(EBS, per_size, iops, capacity=f"{gib}Gi"),
        Ordered(EBS, per_size, iops | {"iops": 1024 * per_gib}, capacity="1024Gi"),
        Ordered(EBS, per_size, iops | {"iops": 1536 * per_gib}, capacity="1.5Ti"),
        Ordered(EBS, {"type": "io1"}, None),
        Ordered(EBS, {"type": "gp2"}, None, is_dynamic=False),
        Ordered(
            AZURE, cached, premium | {"caching": "read-only", "options": {"on_demand_burst": "on"}}
        ),
        Ordered(AZURE, {}, premium, attributes={"skuName": "Premium_LRS"}, is_dynamic=False),
        Ordered(PD, {}, {"provider": "gcp", "api_type": "pd-standard"}),
        Ordered(CINDER, {}, None),
        Ordered("csi.example.org", {"type": "fast"}, None),
    ]


def some_handle(draw: random.Random, driver: str, name: str) -> str:
    """Return a handle in the shape of those of a driver."""
    long = "/subscriptions/{}/resourceGroups/Nodes/providers/Microsoft.Compute/disks/{}"
    handles = {
        EBS: f"vol-{draw.getrandbits(68):017x}",
        PD: f"projects/p-{draw.getrandbits(16)}/zones/europe-west4-a/disks/{name}",
        AZURE: long.format(uuid.UUID(int=draw.getrandbits(128)), name),
    }
    return handles.get(driver, str(uuid.UUID(int=draw.getrandbits(128))))


def created(cluster: Cluster, draw: random.Random, orders: list[Ordered]) -> list[Created]:
    """Create volumes and their classes, as drivers and people do."""
    made = []
    versions: dict[str, str] = {}
    for number, ordered in enumerate(orders):
        name = f"pvc-{uuid.uuid4()}"
        storage_class, attributes_class = f"class-{name[4:12]}-{number}", None
        versions[STORAGE_CLASSES] = cluster.create(
            STORAGE_CLASSES,
            storage_class,
            provisioner=ordered.driver,
            parameters=ordered.parameters or None,
        ).version
        if ordered.changed is not None:
            attributes_class = f"changed.{storage_class}"
            versions[ATTRIBUTES_CLASSES] = cluster.create(
                ATTRIBUTES_CLASSES,
                attributes_class,
                driverName=ordered.driver,
                parameters=ordered.changed,
            ).version
        claim = {"namespace": f"team-{draw.randint(1, 9)}", "name": f"data-pg-{number}"}
        handle = some_handle(draw, ordered.driver, name)
        csi: dict[str, Any] = {"driver": ordered.driver, "volumeHandle": handle, "fsType": "ext4"}
        if ordered.attributes is not None:
            csi["volumeAttributes"] = ordered.attributes
        by = {"annotations": {"pv.kubernetes.io/provisioned-by": ordered.driver}}
        spec = {
            "capacity": {"storage": ordered.capacity},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim},
            "csi": csi,
            "storageClassName": storage_class,
            "volumeAttributesClassName": attributes_class,
        }
        versions[VOLUMES] = cluster.create(
            VOLUMES, name, metadata=by if ordered.is_dynamic else {}, spec=spec
        ).version
        made.append(Created(name, handle, ordered, claim, storage_class, attributes_class))
    for path, version in versions.items():
        cluster.in_memory(path, version)
    return made


def mount_table(draw: random.Random, volumes: Iterable[Created]) -> str:
    """Return the mount table that kubelet leaves on a node with volumes, and other mounts."""
    pods = f"{KUBELET}/pods/{uuid.UUID(int=draw.getrandbits(128))}/volumes"
    csi = f"{KUBELET}/plugins/kubernetes.io/csi"
    mounts = [
        ("259:1", "/", "/", "ext4", "/dev/nvme0n1p1"),
        ("0:50", "/", f"{pods}/kubernetes.io~secret/pvc-secret", "tmpfs", "tmpfs"),
        ("0:51", "/", f"{pods}/kubernetes.io~csi/pvc-network/mount", "nfs4", "10.0.0.9:/a"),
        ("259:2", "/", f"{pods}/kubernetes.io~csi/{INLINE}/mount", "ext4", "/dev/nvme9n1"),
    ]
    for number, volume in enumerate(volumes, 3):
        device, kind = f"/dev/nvme{number}n1", draw.choice(["ext4", "xfs", "btrfs", "block"])
        if kind == "block":
            point = f"{csi}/volumeDevices/publish/{volume.name}/{uuid.uuid4()}"
            mounts.append(("0:5", device.removeprefix("/dev"), point, "devtmpfs", "udev"))
            continue
        numbers = f"0:{number + 60}" if kind == "btrfs" else f"259:{number}"
        staged = hashlib.sha256(volume.handle.encode()).hexdigest()
        mounts += [
            (numbers, "/", point, kind, device)
            for point in (
                f"{csi}/{volume.ordered.driver}/{staged}/globalmount",
                f"{pods}/kubernetes.io~csi/{volume.name}/mount",
            )
        ]
    return "".join(
        f"{line} 1 {numbers} {root} {point} rw,relatime shared:{line} - {kind} {device} rw\n"
        for line, (numbers, root, point, kind, device) in enumerate(mounts, 30)
    )
