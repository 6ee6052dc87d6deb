"""`disksla detect --provider kubernetes` against a real kube-apiserver with a real etcd.

The account has the permissions of packaging/kubernetes, and a token of the TokenRequest API, as
kubelet mounts it. Volumes and classes are random. The mount table is written as kubelet makes it.
"""

import contextlib
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from clouds.apiserver import HOST, PORT, Cluster, make_key
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
    some_order,
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
    draw = random.Random()
    terms = {"provider": "aws", "api_type": "gp3", "iops": 7000, "bandwidth": "250MiB/s"}
    ordered = {"type": "gp3", "throughput": "250"}
    found = created(cluster, draw, [Ordered(EBS, ordered, terms, {"iops": "7000"})])
    node.mount(*found)
    checked(node, found)
    return found


def test_volumes_of_the_node(cluster: Cluster, node: Node) -> None:
    """Create volumes of all drivers, of which the node has mounted half."""
    draw = random.Random(SEED)
    orders = [*special_orders(draw), *(some_order(draw) for _ in range(40))]
    draw.shuffle(orders)
    volumes = created(cluster, draw, orders)
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


def test_answers_come_from_the_memory_of_the_server(
    cluster: Cluster, node: Node, mounted: list[Created]
) -> None:
    with cluster.without_etcd():
        checked(node, mounted)


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


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", VOLUMES),
        ("GET", f"{VOLUMES}?watch=true"),
        ("DELETE", f"{VOLUMES}/pvc-1"),
        ("GET", STORAGE_CLASSES),
        ("GET", "/api/v1/secrets"),
        ("GET", f"/api/v1/namespaces/{SPACE}/configmaps/disksla"),
        ("GET", f"/api/v1/namespaces/{SPACE}/pods"),
        ("GET", "/api/v1/nodes"),
    ],
)
def test_account_is_denied_everything_else(cluster: Cluster, method: str, path: str) -> None:
    token = cluster.token(SPACE, ACCOUNT)
    answer = cluster.call(method, path, token=token, expected=403)
    assert answer.content["reason"] == "Forbidden"


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


def test_token_that_is_expired(cluster: Cluster, node: Node, mounted: list[Created]) -> None:
    """Sign tokens that differ by their time only."""
    token, now = cluster.token(SPACE, ACCOUNT), int(time.time())
    node.give(cluster.signed(token, {"exp": now + 600}))
    good = checked(node, mounted)
    node.give(cluster.signed(token, {"iat": now - 7200, "nbf": now - 7200, "exp": now - 3600}))
    assert_rejected(node.detect(), good, node)


def of_another_cluster(cluster: Cluster, directory: Path) -> str:
    make_key(directory / "other.key")
    return cluster.signed(cluster.token(SPACE, ACCOUNT), {}, directory / "other.key")


def for_another_audience(cluster: Cluster, _: Path) -> str:
    return cluster.token(SPACE, ACCOUNT, audiences=["vault"])


def of_an_account_that_was_deleted(cluster: Cluster, _: Path) -> str:
    name = other_account(cluster)
    token = cluster.token(SPACE, name)
    cluster.call("DELETE", f"{ACCOUNTS}/{name}")
    cluster.create(ACCOUNTS, name)
    return token


@pytest.mark.parametrize(
    "token", [of_another_cluster, for_another_audience, of_an_account_that_was_deleted]
)
def test_token_of_something_else(
    cluster: Cluster, node: Node, mounted: list[Created], token: Callable[[Cluster, Path], str]
) -> None:
    good = checked(node, mounted)
    node.give(token(cluster, node.directory))
    assert_rejected(*until_it_fails(node, good), node)


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


def test_role_that_is_not_bound(cluster: Cluster, node: Node, mounted: list[Created]) -> None:
    good = checked(node, mounted)
    node.give(cluster.token(SPACE, other_account(cluster)))
    ended = node.detect()
    assert ended.reasons == [("metadata", "denied")]
    assert "may not get persistentvolumes; add the verb get" in ended.output
    assert_kept(ended, good)


def test_volume_that_is_gone(cluster: Cluster, node: Node, mounted: list[Created]) -> None:
    """It keeps its terms while it is being deleted: its node has it mounted still."""
    draw = random.Random()
    [other] = created(cluster, draw, [Ordered(EBS, {}, special_orders(draw)[0].terms)])
    node.mount(other, *mounted)
    checked(node, [other, *mounted])
    path = f"{VOLUMES}/{other.name}"
    deleting = cluster.call("DELETE", path)
    assert deleting.content["metadata"]["deletionTimestamp"]
    cluster.in_memory(VOLUMES, deleting.version)
    checked(node, [other, *mounted])
    cluster.release(path)
    assert eventually(lambda: len(node.detect().file["volumes"]) == 1, WITHIN_S)
    checked(node, mounted)


@pytest.mark.parametrize("which", ["storage_class", "attributes_class"])
def test_class_that_is_gone(
    cluster: Cluster, node: Node, mounted: list[Created], which: str
) -> None:
    [volume] = mounted
    classes = STORAGE_CLASSES if which == "storage_class" else ATTRIBUTES_CLASSES
    path = f"{classes}/{getattr(volume, which)}"
    cluster.release(path)
    cluster.call("DELETE", path)
    assert eventually(lambda: node.detect().file["disks"] == [], WITHIN_S)
    ended = node.detect()
    assert (ended.status, ended.file["volumes"]) == (0, [volume.described])


@pytest.fixture
def one_request_at_a_time(cluster: Cluster) -> Iterator[None]:
    """Make the server's flow control reject requests of the account while it executes another."""
    control = "/apis/flowcontrol.apiserver.k8s.io/v1"
    level: dict[str, Any] = {"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0}
    level |= {"lendablePercent": 0, "limitResponse": {"type": "Reject"}}
    subject = {"kind": "ServiceAccount", "serviceAccount": {"namespace": SPACE, "name": ACCOUNT}}
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True}
    flow = {
        "priorityLevelConfiguration": {"name": "one"},
        "matchingPrecedence": 2,
        "rules": [{"subjects": [subject], "resourceRules": [everything]}],
    }

    def is_in_force() -> bool:
        status = cluster.call("GET", f"{control}/flowschemas/one").content["status"]
        conditions = status.get("conditions", ())
        return ("Dangling", "False") in {(each["type"], each["status"]) for each in conditions}

    with contextlib.ExitStack() as stack:
        for kind, spec in (
            ("prioritylevelconfigurations", {"type": "Limited", "limited": level}),
            ("flowschemas", flow),
        ):
            cluster.create(f"{control}/{kind}", "one", spec=spec)
            stack.callback(cluster.call, "DELETE", f"{control}/{kind}/one")
        assert eventually(is_in_force, WITHIN_S)
        yield


@pytest.mark.usefixtures("one_request_at_a_time")
def test_server_that_is_busy(cluster: Cluster, node: Node, mounted: list[Created]) -> None:
    """Another request of the account waits for etcd, which does not answer."""
    good = checked(node, mounted)
    token = cluster.token(SPACE, ACCOUNT)
    with ThreadPoolExecutor() as pool:
        with cluster.without_etcd():
            path = f"{VOLUMES}/{mounted[0].name}"
            waiting = pool.submit(cluster.call, "GET", path, token=token)
            ended, good = until_it_fails(node, good)
        assert waiting.result().content["metadata"]["name"] == mounted[0].name
    assert ended.reasons == [("metadata", "throttled")]
    assert "too many requests (HTTP 429); they are repeated at the next run" in ended.output
    assert_kept(ended, good)
    checked(node, mounted)


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
