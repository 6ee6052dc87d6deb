"""`disksla detect --provider kubernetes` against a real kube-apiserver with a real etcd.

The account has the permissions of packaging/kubernetes, and a token of the TokenRequest API, as
kubelet mounts it. The mount table is written as kubelet makes it.
"""

import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from clouds.apiserver import HOST, PORT, Cluster
from clouds.namespace import Ended, Namespace
from clouds.persistent_volumes import (
    ATTRIBUTES_CLASSES,
    EBS,
    INLINE,
    STORAGE_CLASSES,
    VOLUMES,
    Created,
    Ordered,
    created,
    mount_table,
    special_orders,
)
from support.waiting import eventually

pytestmark = pytest.mark.alone  # one pair of servers for all tests

ROOT = Path(__file__).resolve().parent.parent.parent
MANIFEST = (ROOT / "packaging" / "kubernetes" / "daemonset.yaml").read_text(encoding="utf-8")
SPACE = ACCOUNT = "disksla"
ACCOUNTS = f"/api/v1/namespaces/{SPACE}/serviceaccounts"
USER = f"system:serviceaccount:{SPACE}:{ACCOUNT}"
SEED = 20261123
WITHIN_S = 60.0

ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/disksla"
PERMITTED = {
    ("get", "", "persistentvolumes"),
    ("get", "storage.k8s.io", "storageclasses"),
    ("get", "storage.k8s.io", "volumeattributesclasses"),
}
"""What docs/kubernetes.md promises."""
CHANGED = Ordered(
    EBS,
    {"type": "gp3", "throughput": "250"},
    {"provider": "aws", "api_type": "gp3", "iops": 7000, "bandwidth": "250MiB/s"},
    {"iops": "7000"},
)
"""A volume with both classes."""


class Node:
    """A node with mounted volumes, and the account that kubelet mounts into a pod there."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self.output = directory / "kubernetes.json"
        self.point = directory / "account"
        self._draw = random.Random(SEED)
        (directory / "proc" / "1").mkdir(parents=True)
        self.mount()
        self.give(cluster.token(SPACE, ACCOUNT))

    def give(self, token: str, authority: Path | None = None) -> None:
        """Mount an account, as kubelet does: by links to the present version."""
        version = self.point / f"..{uuid.uuid4()}"
        version.mkdir(parents=True)
        (version / "token").write_text(token)
        (version / "ca.crt").write_bytes((authority or self.cluster.authority).read_bytes())
        (self.point / "..new").symlink_to(version.name)
        (self.point / "..new").rename(self.point / "..data")
        for name in ("token", "ca.crt"):
            if not (self.point / name).is_symlink():
                (self.point / name).symlink_to(f"..data/{name}")

    def mount(self, *volumes: Created) -> None:
        """Replace the mount table by that of a node with these volumes."""
        table = self.directory / "proc" / "1" / "mountinfo"
        table.write_text(mount_table(self._draw, volumes))

    def detect(self, *arguments: str | Path, host: str = HOST) -> Ended:
        """Run the command of the container, with the environment of its pod."""
        env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(PORT)}
        options = ("--provider", "kubernetes", "--credentials", self.point)
        places = ("--path.procfs", self.directory / "proc", "--output", self.output)
        return self.cluster.namespace.detect(*options, *places, *arguments, env=env)


@pytest.fixture(scope="module")
def cluster(
    namespace: Namespace,
    kubernetes_environment: Path,
    certificates: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    """Return a cluster with the manifest of packaging/kubernetes."""
    directory = tmp_path_factory.mktemp("cluster")
    made = Cluster(namespace, directory, certificates / "authority.crt")
    with made.running(kubernetes_environment / "bin", certificates, USER):
        made.apply(MANIFEST)
        wait_for(made, PERMITTED)
        yield made


@pytest.fixture
def node(cluster: Cluster, tmp_path: Path) -> Node:
    return Node(cluster, tmp_path)


@pytest.fixture
def permissions(cluster: Cluster) -> Iterator[Callable[[set[tuple[str, str, str]]], None]]:
    """Return a function that replaces the rules of the role; they are restored afterwards."""

    def replace(permitted: set[tuple[str, str, str]]) -> None:
        rules = [
            {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
            for verb, group, resource in sorted(permitted)
        ]
        merge = "application/merge-patch+json"
        cluster.call("PATCH", ROLE, {"rules": rules}, content=merge)
        wait_for(cluster, permitted)

    yield replace
    cluster.apply(MANIFEST)
    wait_for(cluster, PERMITTED)


def wait_for(cluster: Cluster, permitted: set[tuple[str, str, str]]) -> None:
    """Wait until the authorizer of the server knows the rules."""

    def is_in_force() -> bool:
        return {each for each in PERMITTED if may(cluster, *each)} == permitted

    assert eventually(is_in_force, WITHIN_S)


def may(cluster: Cluster, verb: str, group: str, resource: str) -> bool:
    """Return whether the service account is permitted something, as the server says."""
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    attributes = {"verb": verb, "group": group, "resource": resource}
    review = {"spec": {"user": USER, "resourceAttributes": attributes}}
    found: bool = cluster.call("POST", path, review).content["status"]["allowed"]
    return found


def checked(node: Node, mounted: list[Created]) -> Ended:
    """Run detection, which has to find all that is mounted, and nothing else."""
    ended = node.detect("--cinder", "vk")
    assert ended.status == 0, ended.output
    in_order = sorted(mounted, key=lambda volume: volume.name)
    assert ended.file["disks"] == [entry for volume in in_order for entry in volume.terms]
    assert ended.file["volumes"] == [volume.described for volume in in_order]
    return ended


@pytest.fixture
def mounted(cluster: Cluster, node: Node) -> list[Created]:
    """Return a volume with both classes, which the node has mounted and detection has found."""
    found = created(cluster, random.Random(), [CHANGED])
    node.mount(*found)
    checked(node, found)
    return found


def test_volumes_of_the_node(cluster: Cluster, node: Node) -> None:
    """Create a volume for each rule, of which the node has mounted half."""
    draw = random.Random(SEED)
    volumes = created(cluster, draw, [CHANGED, *special_orders(draw)])
    for half in (volumes[::2], volumes[1::2]):
        before = len(cluster.audit())
        node.mount(*half)
        ended = checked(node, half)
        assert (node.point / "token").read_text() not in ended.output
        expected = {f"{VOLUMES}/{name}" for name in (INLINE, *(volume.name for volume in half))}
        for volume in half:
            if volume.ordered.is_dynamic:
                expected.add(f"{STORAGE_CLASSES}/{volume.storage_class}")
            if volume.attributes_class is not None:
                expected.add(f"{ATTRIBUTES_CLASSES}/{volume.attributes_class}")
        requests = requested(cluster, before, len(expected))
        assert requests == sorted(("get", f"{path}?resourceVersion=0") for path in expected)


def requested(cluster: Cluster, before: int, count: int) -> list[tuple[str, str]]:
    """Return what the account has requested after its first requests, once it is that many."""
    assert eventually(lambda: len(cluster.audit()) >= before + count, WITHIN_S)
    return sorted((event["verb"], event["requestURI"]) for event in cluster.audit()[before:])


def test_role_permits_what_is_documented_and_no_more(cluster: Cluster) -> None:
    """Compare the rules of the account with those of any other."""

    def rules(account: str) -> set[tuple[str, str, str]]:
        token = cluster.token(SPACE, account)
        path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        found = cluster.call("POST", path, {"spec": {"namespace": SPACE}}, token=token)
        status = found.content["status"]
        assert status["incomplete"] is False
        resources = {
            (verb, group, resource)
            for rule in status["resourceRules"]
            for verb in rule["verbs"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        others = {
            (verb, "", path)
            for rule in status["nonResourceRules"]
            for verb in rule["verbs"]
            for path in rule["nonResourceURLs"]
        }
        return resources | others

    assert rules(ACCOUNT) - rules(other_account(cluster)) == PERMITTED


def other_account(cluster: Cluster) -> str:
    """Create an account without permissions, and return its name."""
    name = f"a-{uuid.uuid4().hex}"
    cluster.create(ACCOUNTS, name)
    return name


def pod_of_the_daemonset(cluster: Cluster) -> dict[str, Any]:
    """Create a pod as the controller of the DaemonSet does, and return what is admitted."""
    path = f"/apis/apps/v1/namespaces/{SPACE}/daemonsets/disksla"
    template = cluster.call("GET", path).content["spec"]["template"]
    made = cluster.create(
        f"/api/v1/namespaces/{SPACE}/pods",
        f"disksla-{uuid.uuid4().hex[:5]}",
        metadata=template["metadata"],
        spec=template["spec"],
    )
    found: dict[str, Any] = made.content
    return found


def token_of_the_pod(cluster: Cluster, pod: Mapping[str, Any]) -> str:
    """Return the token that kubelet mounts: of the projection in the manifest, for this pod."""
    [projection] = [
        source["serviceAccountToken"]
        for volume in pod["spec"]["volumes"]
        for source in volume.get("projected", {}).get("sources", ())
        if "serviceAccountToken" in source
    ]
    bound = {"kind": "Pod", "apiVersion": "v1"}
    bound |= {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    return cluster.token(
        SPACE,
        pod["spec"]["serviceAccountName"],
        audiences=[projection["audience"]] if "audience" in projection else [],
        expirationSeconds=projection["expirationSeconds"],
        boundObjectRef=bound,
    )


def test_token_of_the_pod(cluster: Cluster, node: Node, mounted: list[Created]) -> None:
    """It is mounted into one container, and rejected when the pod is gone."""
    pod = pod_of_the_daemonset(cluster)
    with_token = {
        container["name"]
        for container in pod["spec"]["containers"]
        for mount in container["volumeMounts"]
        if "serviceaccount" in mount["mountPath"]
    }
    assert with_token == {"detect-kubernetes"}
    node.give(token_of_the_pod(cluster, pod))
    good = checked(node, mounted)
    path = f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}"
    cluster.call("DELETE", f"{path}?gracePeriodSeconds=0")
    assert_rejected(*until_it_fails(node, good), node)


def until_it_fails(node: Node, good: Ended) -> tuple[Ended, Ended]:
    """Return the first run that fails, and the good one before.

    The server remembers for 10 seconds that a token is good.
    """
    runs = [good]

    def fails() -> bool:
        runs.append(node.detect())
        return runs[-1].status != 0

    assert eventually(fails, WITHIN_S)
    return runs[-1], runs[-2]


def assert_rejected(ended: Ended, good: Ended, node: Node) -> None:
    """Check what is left after the token was rejected."""
    assert (ended.status, ended.reasons) == (1, [("metadata", "expired")]), ended.output
    assert "failed: the API server rejected the token of the service account; " in ended.output
    assert_kept(ended, good)
    token = (node.point / "token").read_text()
    assert token not in ended.output


def assert_kept(ended: Ended, good: Ended) -> None:
    for key in ("as_of", "disks", "volumes"):
        assert ended.file[key] == good.file[key]


@pytest.mark.parametrize("missing", sorted(PERMITTED))
def test_permission_that_is_missing(
    node: Node,
    mounted: list[Created],
    permissions: Callable[[set[tuple[str, str, str]]], None],
    missing: tuple[str, str, str],
) -> None:
    good = checked(node, mounted)
    permissions(PERMITTED - {missing})
    ended = node.detect()
    assert (ended.status, ended.reasons) == (1, [("metadata", "denied")]), ended.output
    _, group, resource = missing
    hint = f"add the verb get on them (API group {group or chr(34) * 2}) to its ClusterRole"
    [problem] = ended.file["problems"]
    assert f"the service account may not get {resource}; {hint}" in problem["message"]
    assert_kept(ended, good)


@pytest.mark.parametrize("authority", ["old", "old-between"])
def test_certificates_of_clusters(
    node: Node, mounted: list[Created], certificates: Path, authority: str
) -> None:
    """Trust a root that lacks what Python 3.13 requires, or the authority that it signed."""
    node.give((node.point / "token").read_text(), certificates / f"{authority}.crt")
    ended = node.detect("--cinder", "vk", host="localhost")
    assert ended.status == 0, ended.output
    assert ended.file["disks"] == mounted[0].terms
    node.give((node.point / "token").read_text(), certificates / "stranger.crt")
    ended = node.detect(host="localhost")
    assert ended.reasons == [("metadata", "invalid")]
    assert "the certificate of the server is not valid" in ended.output
