"""What is asked of the API of Kubernetes, and how its answers are read.

Answers have the shape of the API reference, and parameters are those that the drivers document.
benches/clouds has the same against a server with TLS.
"""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.base.units import MB, MIB
from disksla.clouds.detection import encode_terms_file, terms_file
from disksla.clouds.detection.clouds_file import read_account, read_names
from disksla.clouds.detection.findings import CloudDisk, Detected
from disksla.clouds.detection.kubernetes import Account, detect_kubernetes
from disksla.clouds.http_client.exchange import ExchangeError, Request, Response
from disksla.kernel.disks.csi_volume import handle_hash
from disksla.promise.configuration.matched import with_kubernetes_volumes
from disksla.promise.configuration.matching import assign
from disksla.promise.configuration.settings import Settings
from support.exchanges import answered, disks_of, reply
from support.machine_facts import terms_file as read_file
from support.simulated_host import CATALOG, a_disk

NOW = dt.datetime(2026, 11, 23, 1, 2, 3, tzinfo=dt.UTC)
TOKEN = "eyJS3CRET.token"
ACCOUNT = Account("https://10.0.0.1:443", TOKEN, "/ca.crt")
EBS, PD, AZURE = "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"
CINDER, YANDEX = "cinder.csi.openstack.org", "disk-csi-driver.mks.ycloud.io"
EKS_AUTO, EVEREST, DECKHOUSE = (
    "ebs.csi.eks.amazonaws.com",
    "disk.csi.everest.io",
    "yandex.csi.flant.com",
)


def volume(
    driver: str = EBS,
    handle: str = "vol-0a1b",
    *,
    dynamic: bool = True,
    changed: str | None = None,
    attributes: dict[str, str] | None = None,
    capacity: str = "500Gi",
) -> dict[str, Any]:
    """Return a PersistentVolume of the class `fast`, changed to the attributes class `changed`."""
    return {
        "kind": "PersistentVolume",
        "apiVersion": "v1",
        "metadata": {
            "name": "pvc-1",
            "annotations": {"pv.kubernetes.io/provisioned-by": driver} if dynamic else {},
        },
        "spec": {
            "capacity": {"storage": capacity},
            "csi": {
                "driver": driver,
                "volumeHandle": handle,
                "volumeAttributes": attributes or {},
            },
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "db", "name": "data-pg-0"},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "fast",
            **({} if changed is None else {"volumeAttributesClassName": changed}),
        },
        "status": {"phase": "Bound"},
    }


class Api:
    """Objects by the path under which the API serves them."""

    def __init__(self, **objects: Any) -> None:
        self.objects = objects

    def __call__(self, request: Request) -> Response:
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        assert request.authority == "/ca.crt"
        path, _, query = request.url.removeprefix("https://10.0.0.1:443").partition("?")
        assert query == "resourceVersion=0"
        folder, _, name = path.rpartition("/")
        places = {
            "/api/v1/persistentvolumes": "pv_",
            "/apis/storage.k8s.io/v1/storageclasses": "sc_",
            "/apis/storage.k8s.io/v1/volumeattributesclasses": "vac_",
        }
        found = self.objects.get(places[folder] + name.replace("-", "_"))
        if isinstance(found, int):
            return reply({"kind": "Status", "message": f"{TOKEN} is forbidden"}, found)
        return reply({"kind": "Status", "reason": "NotFound"}, 404) if not found else reply(found)


def storage_class(**parameters: str) -> dict[str, Any]:
    return {"kind": "StorageClass", "provisioner": "x", "parameters": parameters}


def detected(*names: str, cinder: str = "openstack", **objects: Any) -> Detected:
    found, _ = answered(detect_kubernetes(ACCOUNT, names, cinder), Api(**objects))
    assert TOKEN not in repr(found)
    return found


def ordered(
    driver: str,
    parameters: dict[str, str] | None,
    changed: dict[str, str] | None = None,
    **values: Any,
) -> CloudDisk | None:
    """Return the terms of a volume with these parameters of its classes."""
    cinder = values.pop("cinder", "openstack")
    found = detected(
        "pvc-1",
        cinder=cinder,
        pv_pvc_1=volume(driver, "h", changed=None if changed is None else "quick", **values),
        sc_fast=None if parameters is None else storage_class(**parameters),
        vac_quick=None if changed is None else {"driverName": driver, "parameters": changed},
    )
    assert found.problems == ()
    assert found.metadata is not None
    assert [each.volume_handle for each in found.volumes] == ["h"]
    disks = found.metadata.disks
    assert all((disk.volume, disk.is_handle) == ("h", True) for disk in disks)
    return disks[0] if disks else None


def values(disk: CloudDisk | None) -> tuple[Any, ...] | None:
    if disk is None:
        return None
    return disk.provider, disk.api_type, disk.iops, disk.bytes_per_second


@pytest.mark.parametrize(
    ("driver", "parameters", "expected"),
    [
        (EBS, {}, ("aws", "gp3", 3000, 125 * MIB)),
        (
            EBS,
            {"type": "gp3", "iops": "6000", "throughput": "250"},
            ("aws", "gp3", 6000, 250 * MIB),
        ),
        (EBS, {"Type": "io2", "IOPS": "9000"}, ("aws", "io2", 9000, None)),
        (EBS, {"type": "io1", "iopsPerGB": "10"}, ("aws", "io1", 5000, None)),
        # At most 50 per GiB, of io2 500: newer versions of the driver order up to 1000.
        (EBS, {"type": "io1", "iopsPerGB": "1000"}, ("aws", "io1", 25_000, None)),
        (EBS, {"type": "io1", "iops": "30000"}, ("aws", "io1", 25_000, None)),
        (EBS, {"type": "io2", "iopsPerGB": "600"}, None),
        (EBS, {"type": "io1", "iopsPerGB": "many"}, None),
        (EBS, {"type": "gp3", "iopsPerGB": "1"}, None),
        (EBS, {"type": "io2"}, None),
        (EBS, {"type": "gp3", "throughput": "much"}, None),
        (EBS, {"type": "st1", "iops": "5"}, ("aws", "st1", None, None)),
        (EBS, {"type": "a b"}, None),
        (PD, {}, ("gcp", "pd-standard", None, None)),
        (PD, {"type": "pd-ssd"}, ("gcp", "pd-ssd", None, None)),
        (PD, {"type": "dynamic", "pd-type": "pd-ssd", "hyperdisk-type": "hyperdisk-new"}, None),
        (
            PD,
            {
                "type": "hyperdisk-balanced",
                "provisioned-iops-on-create": "7000",
                "provisioned-throughput-on-create": "250Mi",
            },
            ("gcp", "hyperdisk-balanced", 7000, 250 * MIB),
        ),
        (PD, {"type": "hyperdisk-balanced", "provisioned-iops-on-create": "7000"}, None),
        (PD, {"type": "hyperdisk-throughput", "provisioned-throughput-on-create": "250"}, None),
        (PD, {"type": "hyperdisk-new"}, None),
        (PD, {"type": "?"}, None),
        (AZURE, {}, ("azure", "StandardSSD_LRS", None, None)),
        (AZURE, {"skuName": "Premium_LRS"}, ("azure", "Premium_LRS", None, None)),
        (AZURE, {"storageAccountType": "Premium_ZRS"}, ("azure", "Premium_ZRS", None, None)),
        (
            AZURE,
            {"skuName": "PremiumV2_LRS", "DiskIOPSReadWrite": "8000", "DiskMBpsReadWrite": "300"},
            ("azure", "PremiumV2_LRS", 8000, 300 * MB),
        ),
        (AZURE, {"skuName": "UltraSSD_LRS", "DiskIOPSReadWrite": "8000"}, None),
        (AZURE, {"skuName": ""}, ("azure", "StandardSSD_LRS", None, None)),
        (AZURE, {"skuName": "a b"}, None),
        (EKS_AUTO, {"type": "io1", "iops": "700"}, ("aws", "io1", 700, None)),
        (EKS_AUTO, {}, ("aws", "gp3", 3000, 125 * MIB)),
        (EVEREST, {"everest.io/disk-volume-type": "GPSSD"}, ("huawei", "GPSSD", None, None)),
        (DECKHOUSE, {"type": "network-hdd"}, ("yandex", "network-hdd", None, None)),
        (CINDER, {"type": "ceph-ssd"}, ("openstack", "ceph-ssd", None, None)),
        (CINDER, {}, None),
        (YANDEX, {"type": "network-ssd"}, ("yandex", "network-ssd", None, None)),
        ("csi.example.org", {"type": "fast"}, None),
    ],
)
def test_parameters_of_a_storage_class(
    driver: str, parameters: dict[str, str], expected: tuple[Any, ...] | None
) -> None:
    assert values(ordered(driver, parameters)) == expected


@pytest.mark.parametrize(
    ("driver", "parameters", "changed", "expected"),
    [
        (EBS, {"iops": "3000"}, {"iops": "9000"}, ("aws", "gp3", 9000, 125 * MIB)),
        (EBS, {"type": "gp2"}, {"type": "io2", "iops": "9"}, ("aws", "io2", 9, None)),
        (EBS, {}, {"type": "gp3"}, ("aws", "gp3", 3000, 125 * MIB)),
        (EBS, {"type": "gp2"}, {"type": "st1"}, ("aws", "st1", None, None)),
        # What the volume has since follows from its former type.
        (EBS, {"type": "gp2"}, {"type": "gp3"}, None),
        (EBS, {"type": "gp2"}, {"type": "gp3", "iops": "4000"}, None),
        (EBS, {"type": "io1", "iops": "8000"}, {"type": "gp3"}, None),
        (EBS, {"type": "io1", "iops": "8000"}, {"type": "io2"}, None),
        (EKS_AUTO, {"type": "gp2"}, {"type": "gp3"}, None),
        (
            EBS,
            {"type": "gp2"},
            {"type": "gp3", "iops": "4000", "throughput": "300"},
            ("aws", "gp3", 4000, 300 * MIB),
        ),
        (EBS, {"type": "io1", "iopsPerGB": "10"}, {"iops": "200"}, ("aws", "io1", 200, None)),
        (
            PD,
            {
                "type": "hyperdisk-balanced",
                "provisioned-iops-on-create": "7000",
                "provisioned-throughput-on-create": "250Mi",
            },
            {"iops": "9000", "throughput": "300Mi"},
            ("gcp", "hyperdisk-balanced", 9000, 300 * MIB),
        ),
        (
            AZURE,
            {"skuName": "PremiumV2_LRS", "DiskMBpsReadWrite": "300", "DiskIOPSReadWrite": "1"},
            {"diskIopsReadWrite": "4000"},
            ("azure", "PremiumV2_LRS", 4000, 300 * MB),
        ),
    ],
)
def test_attributes_class_wins(
    driver: str, parameters: dict[str, str], changed: dict[str, str], expected: tuple[Any, ...]
) -> None:
    assert values(ordered(driver, parameters, changed)) == expected


@pytest.mark.parametrize(
    ("parameters", "capacity", "caching"),
    [
        ({}, "500Gi", "read-only"),
        ({"skuName": "Premium_LRS"}, "4095Gi", "read-only"),
        ({"skuName": "Premium_LRS"}, "8Ti", "none"),
        ({"skuName": "Premium_LRS", "maxShares": "2"}, "500Gi", "none"),
        ({"skuName": "Premium_LRS", "cachingMode": "None"}, "500Gi", "none"),
        ({"skuName": "Premium_LRS", "cachingMode": ""}, "500Gi", "read-only"),
        ({"skuName": "Premium_LRS", "cachingMode": "Sometimes"}, "500Gi", None),
        (
            {"skuName": "UltraSSD_LRS", "DiskIOPSReadWrite": "1", "DiskMBpsReadWrite": "1"},
            "500Gi",
            "none",
        ),
    ],
)
def test_caching_that_the_driver_of_azure_chooses(
    parameters: dict[str, str], capacity: str, caching: str | None
) -> None:
    disk = ordered(AZURE, parameters, capacity=capacity)
    assert disk is not None
    assert disk.caching == caching


def test_caching_of_azure_follows_the_present_size() -> None:
    pv = volume(AZURE, capacity="8Ti")
    fast = storage_class(skuName="Premium_LRS") | {"allowVolumeExpansion": True}
    found = detected("pvc-1", pv_pvc_1=pv, sc_fast=fast)
    assert [disk.caching for disk in disks_of(found.metadata)] == ["none"]


def test_options_and_caching_of_azure() -> None:
    disk = ordered(
        AZURE,
        {
            "skuName": "Premium_LRS",
            "cachingMode": "ReadOnly",
            "enableBursting": "True",
            "enablePerformancePlus": "true",
            "perfProfile": "Basic",
        },
    )
    assert disk is not None
    assert disk.caching == "read-only"
    assert disk.options == {"on_demand_burst": "on", "performance_plus": "on"}
    plain = ordered(AZURE, {"skuName": "Standard_LRS", "enableBursting": "true"})
    assert plain is not None
    assert (plain.caching, plain.options) == ("read-only", {})


def test_provider_of_cinder() -> None:
    assert values(ordered(CINDER, {"type": "ceph-ssd"}, cinder="vk")) == (
        "vk",
        "ceph-ssd",
        None,
        None,
    )
    # It concerns no other driver.
    aws = ordered(EBS, {}, cinder="vk")
    assert aws is not None
    assert aws.provider == "aws"


def test_class_of_a_volume_that_people_created_does_not_count() -> None:
    assert ordered(EBS, {"type": "io2", "iops": "9"}, dynamic=False) is None
    attributes = {"skuName": "Premium_LRS"}
    static = ordered(AZURE, {"skuName": "Ultra"}, dynamic=False, attributes=attributes)
    assert values(static) == ("azure", "Premium_LRS", None, None)


def test_class_that_is_gone() -> None:
    assert ordered(EBS, None) is None
    found = detected("pvc-1", pv_pvc_1=volume(changed="quick"), sc_fast=storage_class())
    assert disks_of(found.metadata) == ()
    assert len(found.volumes) == 1


def test_size_that_is_no_quantity() -> None:
    assert ordered(EBS, {"type": "io1", "iopsPerGB": "10"}, capacity="huge") is None


CREATED: dict[str, Any] = {
    "f:spec": {"f:capacity": {".": {}, "f:storage": {}}, "f:csi": {"f:driver": {}}}
}
BOUND = {"f:spec": {"f:claimRef": {"f:name": {}}}, "f:status": {"f:phase": {}}}
EXPANDED: dict[str, Any] = {"f:spec": {"f:capacity": {"f:storage": {}}}}


@pytest.mark.parametrize(
    ("written", "expansion", "more", "iops"),
    [
        ((CREATED, BOUND), True, {}, 5000),
        (({"f:spec": {"f:csi": {}}}, BOUND, EXPANDED), True, {}, None),
        (({"f:spec": {"f:csi": {}}}, EXPANDED), False, {}, None),
        ((EXPANDED,), True, {"allowAutoIOPSIncreaseOnModify": "true"}, 5000),
        ((EXPANDED,), True, {"allowAutoIOPSIncreaseOnModify": "false"}, None),
        ((), True, {}, None),
        ((BOUND,), True, {}, None),
        ((), False, {}, 5000),
    ],
)
def test_iops_by_size_after_an_expansion(
    written: tuple[dict[str, Any], ...], expansion: bool, more: dict[str, str], iops: int | None
) -> None:
    """The driver of EBS orders `iopsPerGB` for the size at creation, which is not kept."""
    pv = volume()
    pv["metadata"]["managedFields"] = [
        {"manager": "m", "operation": "Update", "fieldsV1": each} for each in written
    ]
    fast = storage_class(type="io1", iopsPerGB="10", **more) | {"allowVolumeExpansion": expansion}
    found = detected("pvc-1", pv_pvc_1=pv, sc_fast=fast)
    assert [disk.iops for disk in disks_of(found.metadata)] == ([] if iops is None else [iops])


def test_expansion_does_not_change_what_is_not_ordered_by_size() -> None:
    pv = volume()
    pv["metadata"]["managedFields"] = [{"fieldsV1": EXPANDED}]
    found = detected("pvc-1", pv_pvc_1=pv, sc_fast=storage_class(type="io1", iops="700"))
    assert [disk.iops for disk in disks_of(found.metadata)] == [700]


def test_volumes_and_requests() -> None:
    objects = {
        "pv_a": volume(handle="vol-a"),
        "pv_b": volume(handle="vol-b"),
        "pv_nfs": {"spec": {"nfs": {"server": "s"}}},
        "sc_fast": storage_class(type="gp3"),
    }
    names = ("a", "b", "Inline_volume", "inline", "nfs")
    found, requests = answered(detect_kubernetes(ACCOUNT, names, "openstack"), Api(**objects))
    assert [request.what for request in requests] == [
        "request for PersistentVolume a",
        "request for StorageClass fast",
        "request for PersistentVolume b",
        "request for PersistentVolume inline",
        "request for PersistentVolume nfs",
    ]
    assert [each.persistent_volume for each in found.volumes] == ["a", "b"]
    (first, _) = found.volumes
    assert (first.claim, first.namespace, first.storage_class) == ("data-pg-0", "db", "fast")


def test_node_without_volumes_asks_nothing() -> None:
    found, requests = answered(detect_kubernetes(ACCOUNT, (), "openstack"), [])
    assert (requests, found.problems, found.volumes) == ([], (), ())


@pytest.mark.parametrize(
    ("objects", "reason", "words"),
    [
        (
            {"pv_a": 403},
            "denied",
            'get persistentvolumes; add the verb get on them (API group "")',
        ),
        (
            {"pv_a": volume(), "sc_fast": 403},
            "denied",
            "get storageclasses; add the verb get on them (API group storage.k8s.io)",
        ),
        (
            {"pv_a": volume(changed="x"), "sc_fast": storage_class(), "vac_x": 403},
            "denied",
            "may not get volumeattributesclasses",
        ),
        ({"pv_a": 401}, "expired", "rejected the token"),
        ({"pv_a": 429}, "throttled", "too many requests"),
        ({"pv_a": 500}, "unreachable", "error"),
        ({"pv_a": 302}, "redirected", "redirects"),
        ({"pv_a": {"spec": []}}, "invalid", "not what the provider documents"),
        ({"pv_a": volume(handle="a\nb")}, "invalid", "not text"),
        ({"pv_a": volume(handle="")}, "invalid", "not what the provider documents"),
    ],
)
def test_failure_is_named(objects: dict[str, Any], reason: str, words: str) -> None:
    found = detected("a", "b", **objects)
    (problem,) = found.problems
    assert (problem.source, problem.reason) == ("metadata", reason)
    assert words in problem.message
    assert (found.metadata, found.volumes) == (None, ())


def test_server_that_cannot_be_reached() -> None:
    answers = [ExchangeError("timeout", "there was no complete answer within 30 s")]
    found, _ = answered(detect_kubernetes(ACCOUNT, ["a"], "openstack"), answers)
    assert [problem.reason for problem in found.problems] == ["timeout"]


def test_too_many_volumes() -> None:
    names = [f"pvc-{number}" for number in range(1001)]
    found, requests = answered(detect_kubernetes(ACCOUNT, names, "openstack"), [])
    assert (requests, found.problems[0].reason) == ([], "too_large")


@given(st.binary(), st.integers(200, 599))
def test_any_answer_is_a_finding(body: bytes, status: int) -> None:
    found, _ = answered(
        detect_kubernetes(ACCOUNT, ["a"], "openstack"), lambda _: reply(body, status)
    )
    assert found.metadata is not None or found.problems


@given(
    st.sampled_from([EBS, PD, AZURE, CINDER, YANDEX]),
    st.dictionaries(
        st.sampled_from(["type", "skuName", "iops", "iopsPerGB", "throughput", "cachingMode"]),
        st.sampled_from(["gp3", "io1", "hyperdisk-ml", "PremiumV2_LRS", "10", "250Mi", "", "\0"]),
    ),
)
def test_any_parameters_are_terms_or_none(driver: str, parameters: dict[str, str]) -> None:
    disk = ordered(driver, parameters)
    assert disk is None or disk.api_type


def test_file_gives_the_limits() -> None:
    """From the answers to the limits of a disk of which kubelet shows the hash of the handle."""
    handle = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/pvc-1"
    found = detected(
        "pvc-1",
        pv_pvc_1=volume(AZURE, handle),
        sc_fast=storage_class(
            skuName="PremiumV2_LRS", DiskIOPSReadWrite="8000", DiskMBpsReadWrite="300"
        ),
    )
    data = encode_terms_file(terms_file(found, None, NOW))
    assert json.loads(data) == {
        "source": "metadata",
        "origin": "Kubernetes API",
        "as_of": "2026-11-23T01:02:03Z",
        "tried_at": "2026-11-23T01:02:03Z",
        "max_age": "2h",
        "provider": "kubernetes",
        "machine": {},
        "disks": [
            {
                "match": {"volume_handle": handle},
                "provider": "azure",
                "api_type": "PremiumV2_LRS",
                "iops": 8000,
                "bandwidth": "300MB/s",
                "caching": "none",
            }
        ],
        "volumes": [
            {
                "driver": AZURE,
                "volume_handle": handle,
                "persistent_volume": "pvc-1",
                "claim": "data-pg-0",
                "namespace": "db",
                "storage_class": "fast",
            }
        ],
        "problems": [],
    }
    file = read_file(data.decode(), "k.json")
    (disk,) = with_kubernetes_volumes([a_disk(volume_handle_hash=handle_hash(handle))], (file,))
    assignment = assign(disk, Settings(), CATALOG, (file,))
    assert (assignment.terms, assignment.source) == ("azure.premium-ssd-v2", "metadata")
    assert assignment.limits.rates.read_iops == 8000
    assert assignment.reason.startswith("Kubernetes API matches volume_handle /subscriptions")


def test_failed_attempt_keeps_the_volumes() -> None:
    good = detected("pvc-1", pv_pvc_1=volume(), sc_fast=storage_class())
    first = terms_file(good, None, NOW)
    later = NOW + dt.timedelta(minutes=5)
    kept = terms_file(detected("pvc-1", pv_pvc_1=403), first, later)
    assert (kept.disks, kept.volumes, kept.as_of_timestamp_s) == (
        first.disks,
        first.volumes,
        first.as_of_timestamp_s,
    )
    assert [problem.reason for problem in kept.problems] == ["denied"]
    empty = terms_file(detected(), kept, later)
    assert (empty.disks, empty.volumes) == ((), ())


@pytest.fixture
def account_directory(tmp_path: Path) -> Path:
    """Return the directory as kubelet makes it: links to the present version."""
    version = tmp_path / "..2026_11_23"
    version.mkdir()
    (tmp_path / "..data").symlink_to(version.name)
    for name, content in (("token", f"{TOKEN}\n"), ("ca.crt", "x")):
        (version / name).write_text(content)
        (tmp_path / name).symlink_to(f"..data/{name}")
    return tmp_path


@pytest.mark.parametrize(
    ("environment", "endpoint", "expected"),
    [
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, None, "https://10.0.0.1:443"),
        (
            {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"},
            None,
            "https://[fd00::1]:6443",
        ),
        ({}, "https://api.example.org", "https://api.example.org"),
    ],
)
def test_read_account(
    account_directory: Path, environment: dict[str, str], endpoint: str | None, expected: str
) -> None:
    account = read_account(account_directory, environment, endpoint)
    assert (account.endpoint, account.token) == (expected, TOKEN)
    assert Path(account.authority).read_text() == "x"
    assert TOKEN not in repr(account)


def test_account_that_is_missing(account_directory: Path) -> None:
    with pytest.raises(
        DiskslaError, match="KUBERNETES_SERVICE_HOST is not set; run this in a pod"
    ):
        read_account(account_directory, {})
    (account_directory / "..data" / "token").write_text("a b")
    with pytest.raises(DiskslaError, match="expected the token of a service account"):
        read_account(account_directory, {}, "https://x")
    for name in ("ca.crt", "token"):
        (account_directory / "..data" / "token").write_text("a")
        (account_directory / "..data" / name).unlink()
        with pytest.raises(DiskslaError, match=f"{name}: No such file.*; mount a token"):
            read_account(account_directory, {}, "https://x")


def test_names_of_the_node(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    point = "/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pvc-1/mount"
    (tmp_path / "1" / "mountinfo").write_text(f"9 8 259:2 / {point} rw - xfs /dev/nvme1n1 rw\n")
    assert read_names(Roots(procfs=tmp_path)) == ("pvc-1",)
    with pytest.raises(DiskslaError, match=r"mount the /proc of the node"):
        read_names(Roots(procfs=tmp_path / "missing"))
