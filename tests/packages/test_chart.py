"""The Helm chart: linted, rendered, and validated against the schemas of Kubernetes.

helm and the schemas are in .cache (`.ci/need check`).
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.waiting import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
CHART = ROOT / "packaging" / "helm" / "disksla"
MANIFESTS = ROOT / "packaging" / "kubernetes"
MIXIN = ROOT / "grafana" / "out"
HERE = Path(__file__).parent / "chart"
TOOLS = ROOT / ".cache" / "tools" / "usr" / "bin"
VALIDATE = ROOT / ".cache" / "kubernetes-validate" / "bin" / "kubernetes-validate"
VERSIONS = ("1.25.0", "1.29.0", "1.33.0", "1.37.0")
NOT_OF_KUBERNETES = {"PodMonitor", "ServiceMonitor"}


@pytest.fixture(scope="session")
def helm() -> str:
    found = shutil.which("helm", path=f"{TOOLS}:{os.environ['PATH']}")
    if found is None:
        pytest.skip("NOT TESTED: needs helm in .cache/tools (.ci/need check)")
    return found


def render(helm: str, *options: str | Path, release: str = "disksla") -> str:
    command: list[str | Path] = [
        helm,
        "template",
        release,
        CHART,
        "--kube-version",
        VERSIONS[-1],
        *(() if "--values" in options else ("--set=image.repository=example.org/disksla",)),
        *options,
    ]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def everything(helm: str) -> str:
    return render(helm, "--namespace", "monitoring", "--values", HERE / "values.yaml")


def documents(text: str) -> dict[str, dict[str, Any]]:
    """Return the only object of each kind."""
    found = [each for each in yaml.safe_load_all(text) if each is not None]
    by_kind = {each["kind"]: each for each in found}
    assert len(by_kind) == len(found)
    return by_kind


@pytest.mark.parametrize("options", [(), ("--values", HERE / "values.yaml")])
def test_lint(helm: str, options: tuple[str | Path, ...]) -> None:
    command: list[str | Path] = [
        helm,
        "lint",
        "--strict",
        "--kube-version",
        VERSIONS[-1],
        *options,
        CHART,
    ]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_manifests_are_rendered_from_the_chart(helm: str, tmp_path: Path) -> None:
    path = f"{Path(helm).parent}:{os.environ['PATH']}"
    script = ROOT / "packaging" / "manifests"
    subprocess.run([script, tmp_path], check=True, env={**os.environ, "PATH": path})
    for made in tmp_path.iterdir():
        present = (MANIFESTS / made.name).read_text(encoding="utf-8")
        assert made.read_text(encoding="utf-8") == present, "run make manifests"
    assert {made.name for made in tmp_path.iterdir()} == {
        manifest.name for manifest in MANIFESTS.iterdir()
    }


def test_everything(helm: str, golden: Callable[[Path, str], None]) -> None:
    golden(HERE / "expected.yaml", everything(helm))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "source", [everything, lambda _: (MANIFESTS / "daemonset.yaml").read_text()]
)
def test_schemas_of_kubernetes(
    helm: str, version: str, source: Callable[[str], str], tmp_path: Path
) -> None:
    if not VALIDATE.exists():
        pytest.skip("NOT TESTED: needs kubernetes-validate in .cache (.ci/need check)")
    objects = documents(source(helm))
    files = []
    for kind, content in objects.items():
        if kind not in NOT_OF_KUBERNETES:
            files.append(tmp_path / f"{kind}.yaml")
            files[-1].write_text(yaml.safe_dump(content), encoding="utf-8")
    command: list[str | Path] = [VALIDATE, "--strict", "--kubernetes-version", version, *files]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{run.stdout}{run.stderr}".count("passed for resource") == len(files) >= 6


@pytest.mark.parametrize(
    "option",
    [
        "detect.kubernetes.enable=true",
        "ebs.enable=true",
        "events.capability=ALL",
        "detect.kubernetes.intervalSeconds=5",
        "detect.kubernetes.cinder=x; reboot",
        "detect.cloud.provider=other",
        "image.digest=latest",
        "web.secret=x",
        "networkPolicy.from=all",
        "terms.a/b=1",
        "rback.create=false",
        "cluster.name=x",
        "prometheusRule.enable=true",
        "dashboards.label.a=b",
    ],
)
def test_wrong_value_is_rejected(helm: str, option: str) -> None:
    command = [helm, "template", "x", str(CHART), "--kube-version", VERSIONS[-1], "--set", option]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 1
    assert "values don't meet the specifications" in run.stderr


def test_without_detection_nothing_of_the_cluster_is_used(helm: str) -> None:
    found = documents(render(helm, "--set", "detect.kubernetes.enabled=false"))
    assert found.keys() == {"ServiceAccount", "ConfigMap", "DaemonSet"}
    pod = found["DaemonSet"]["spec"]["template"]["spec"]
    assert [each["name"] for each in pod["containers"]] == ["disksla"]
    assert not [each for each in pod["volumes"] if "projected" in each or each["name"] == "terms"]


def test_one_container_is_privileged_and_only_if_asked_for(helm: str) -> None:
    """The others stay as they are, but for the socket that the daemon connects to."""
    before = documents(render(helm))["DaemonSet"]["spec"]["template"]["spec"]
    after = documents(render(helm, "--set", "ebs.enabled=true"))["DaemonSet"]["spec"]["template"]
    [*others, helper] = after["spec"]["containers"]
    assert helper["name"] == "ebs"
    assert helper["securityContext"]["privileged"]
    assert not any(each["securityContext"]["privileged"] for each in others)
    socket = {"name": "ebs", "mountPath": "/run/disksla-ebs"}
    assert socket in helper["volumeMounts"]
    others[0]["volumeMounts"].remove(socket)
    assert others == before["containers"]
    assert not any(each["name"] in {"ebs", "dev"} for each in before["volumes"])


def test_the_daemon_is_root_only_to_read_what_nfs_mounts_do(helm: str) -> None:
    def containers(*options: str) -> list[dict[str, Any]]:
        pod = documents(render(helm, *options))["DaemonSet"]["spec"]["template"]["spec"]
        found: list[dict[str, Any]] = pod["containers"]
        return found

    [before, *others], [after, *same] = containers(), containers("--set", "nfs.enabled=true")
    assert same == others
    security = before["securityContext"]
    assert "runAsUser" not in security
    assert after["securityContext"] == security | {"runAsNonRoot": False, "runAsUser": 0}
    assert security["capabilities"] == {"drop": ["ALL"]}
    below = {mount["name"] for mount in after["volumeMounts"] if mount.get("recursiveReadOnly")}
    assert below == {"proc", "sys-cgroup"}, "binfmt_misc is below, and hierarchies of cgroup v1"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("image.tag=a", "image.repository is not set: no public registry has an image"),
        ("image.repository=x,nfs.enabled=true", "nfs.enabled needs Kubernetes 1.30"),
        ("image.repository=x,networkPolicy.enabled=true", "networkPolicy.from is empty"),
        (
            "image.repository=x,networkPolicy.enabled=true,hostNetwork=true",
            "networkPolicy.enabled protects no pod with hostNetwork",
        ),
    ],
)
def test_sentence_of_what_is_missing(helm: str, options: str, sentence: str) -> None:
    command = [helm, "template", "x", str(CHART), "--kube-version=1.29.0", "--set", options]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 1
    assert sentence in run.stderr


def test_only_those_who_are_named_may_connect(helm: str) -> None:
    peers = (
        "networkPolicy.enabled=true,networkPolicy.from[0].podSelector.matchLabels.app=prometheus"
    )
    found = documents(render(helm, "--set", peers))
    policy, template = found["NetworkPolicy"]["spec"], found["DaemonSet"]["spec"]["template"]
    assert policy["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    [rule] = policy["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
    [port] = template["spec"]["containers"][0]["ports"]
    assert [each["port"] for each in rule["ports"]] == [port["name"]]


@pytest.mark.parametrize("capability", ["PERFMON", "SYS_ADMIN"])
def test_one_container_has_a_capability_and_only_if_wanted(helm: str, capability: str) -> None:
    def containers(option: str) -> list[dict[str, Any]]:
        template = documents(render(helm, "--set", option))["DaemonSet"]["spec"]["template"]
        found: list[dict[str, Any]] = template["spec"]["containers"]
        return found

    [daemon, events, *others] = containers(f"events.enabled=true,events.capability={capability}")
    assert events["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert events["name"] == "events"
    assert events["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": [capability]}
    assert not any("add" in each["securityContext"]["capabilities"] for each in (daemon, *others))
    socket = {"name": "events", "mountPath": "/run/disksla-events"}
    assert socket in events["volumeMounts"]
    assert all(each["readOnly"] for each in events["volumeMounts"] if each != socket)
    daemon["volumeMounts"].remove(socket)
    assert containers("events.enabled=false") == [daemon, *others]
    paths = {each["mountPath"] for each in events["volumeMounts"]}
    assert not any("cgroup" in path or path in {"/host/sys", "/host/proc"} for path in paths)


def test_documents_say_what_each_container_may_do(helm: str) -> None:
    """The table of docs/kubernetes.md, row by row."""
    text = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    table = text.partition("## What each container may do")[2].partition("\n\n")[2]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.partition("\n\n")[0].splitlines()[2:]
    ]
    said = {(name, when.strip("`")): rest for name, when, *rest in rows}
    found: dict[tuple[str, str], list[str]] = {}
    switches = ("always", *(name for _, name in said if name != "always"))
    for switch in dict.fromkeys(switches):
        wanted = "" if switch == "always" else f"{switch}=true"
        off = ",".join(f"{each}=false" for each in switches if each not in {"always", switch})
        options = f"{off},{wanted}".strip(",")
        pod = documents(render(helm, "--set", options))["DaemonSet"]["spec"]["template"]["spec"]
        for container in pod["containers"]:
            key = container["name"], switch
            if key in said:
                found[key] = rights(container, pod)
    assert found == {
        key: [
            cell.replace(
                "the same, `/proc` and `/sys/fs/cgroup` with everything below",
                said["disksla", "always"][-1],
            )
            for cell in rest
        ]
        for key, rest in said.items()
    }


def rights(container: dict[str, Any], pod: dict[str, Any]) -> list[str]:
    """Return user, capabilities, seccomp profile and directories, as the document writes them."""
    security = container["securityContext"]
    user = security.get("runAsUser", pod["securityContext"]["runAsUser"])
    has = {each["name"]: each["hostPath"]["path"] for each in pod["volumes"] if "hostPath" in each}
    mounts = [each for each in container["volumeMounts"] if each["name"] in has]
    assert all(each["readOnly"] for each in mounts)
    paths = ", ".join(sorted(has[each["name"]] for each in mounts)) or "nothing"
    if security["privileged"]:
        return ["root", "privileged: all", "none", paths]
    added = security["capabilities"].get("add")
    assert security["capabilities"]["drop"] == ["ALL"]
    seccomp = pod["securityContext"]["seccompProfile"]["type"]
    return [
        "root" if user == 0 else str(user),
        "`events.capability`" if added == ["PERFMON"] else str(added or "none"),
        "`events.seccompProfile`" if "seccompProfile" in security else seccomp,
        paths,
    ]


def test_rules_are_those_of_the_mixin(helm: str) -> None:
    found = documents(render(helm, "--set=prometheusRule.enabled=true,prometheusRule.labels.a=b"))
    files = [MIXIN / f"prometheus_{name}.yaml" for name in ("rules", "alerts")]
    expected = [yaml.safe_load(file.read_text(encoding="utf-8"))["groups"] for file in files]
    assert found["PrometheusRule"]["spec"] == {"groups": expected[0] + expected[1]}
    assert found["PrometheusRule"]["metadata"]["labels"]["a"] == "b"


def test_dashboards_are_those_of_the_mixin(helm: str) -> None:
    """Each in a ConfigMap with the label that the sidecar of kube-prometheus-stack looks for."""
    options = ("--set=dashboards.enabled=true,dashboards.annotations.grafana_folder=Disks",)
    only = ("--show-only", "templates/dashboards.yaml")
    for namespace in ("disksla", "monitoring"):
        text = render(
            helm, *options, *only, "--namespace=disksla", f"--set=dashboards.namespace={namespace}"
        )
        found = list(yaml.safe_load_all(text))
        for each in found:
            assert each["metadata"]["namespace"] == namespace
            assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
            assert each["metadata"]["annotations"] == {"grafana_folder": "Disks"}
        assert {name: text for each in found for name, text in each["data"].items()} == {
            f"disksla-{file.name}": file.read_text(encoding="utf-8")
            for file in (MIXIN / "dashboards").iterdir()
        }


def test_package_of_the_chart_has_rules_and_dashboards(helm: str, tmp_path: Path) -> None:
    """They are a link in the sources."""
    command: list[str | Path] = [helm, "package", CHART, "--destination", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    [package] = tmp_path.iterdir()
    with tarfile.open(package) as archive:
        names = {name.removeprefix("disksla/mixin/") for name in archive.getnames()}
    mixin = {str(file.relative_to(MIXIN)) for file in MIXIN.rglob("*") if file.is_file()}
    assert mixin <= names


def test_cluster_is_a_label_of_all_series(helm: str) -> None:
    for kind, key in (("podMonitor", "podMetricsEndpoints"), ("serviceMonitor", "endpoints")):
        for cluster in ("", "eu-1"):
            found = documents(render(helm, f"--set={kind}.enabled=true,cluster={cluster}"))
            [endpoint] = found[f"{kind[0].upper()}{kind[1:]}"]["spec"][key]
            relabelled = {each["targetLabel"]: each for each in endpoint["relabelings"]}
            added = {"cluster": {"targetLabel": "cluster", "replacement": cluster}}
            assert relabelled.keys() == {"instance", *(added if cluster else ())}
            assert not cluster or relabelled["cluster"] == added["cluster"]


def test_account_of_the_operator(helm: str) -> None:
    options = ("serviceAccount.create=false", "serviceAccount.name=mine", "rbac.create=false")
    found = documents(render(helm, *(f"--set={option}" for option in options)))
    assert found.keys() == {"ConfigMap", "DaemonSet"}
    assert found["DaemonSet"]["spec"]["template"]["spec"]["serviceAccountName"] == "mine"


def test_names_follow_the_release(helm: str) -> None:
    found = documents(render(helm, "--namespace", "monitoring", release="prod"))
    assert {each["metadata"]["name"] for each in found.values()} == {"prod-disksla"}
    [subject] = found["ClusterRoleBinding"]["subjects"]
    assert (subject["name"], subject["namespace"]) == ("prod-disksla", "monitoring")
    assert found["ClusterRoleBinding"]["roleRef"]["name"] == "prod-disksla"


def test_pods_restart_with_the_configuration_but_not_with_terms(helm: str) -> None:
    def checksum(*options: str) -> str:
        template = documents(render(helm, *options))["DaemonSet"]["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/config"])

    assert checksum("--set", "config.machine.type=m5.large") != checksum()
    assert checksum("--set", "catalog.a\\.yml.b=c") != checksum()
    assert checksum("--set", "terms.a\\.yml.provider=aws") == checksum()


@pytest.mark.parametrize("container", ["detect-kubernetes", "detect-cloud"])
@pytest.mark.parametrize("pause", [None, "0.1"])
def test_loop_runs_again_and_ends_at_once(
    helm: str, container: str, pause: str | None, tmp_path: Path
) -> None:
    """Run the command of the container; `disksla detect` fails, as without a pod.

    It has to end during the first pause, which is one of minutes, and go on after a short one.
    """
    pod = documents(everything(helm))["DaemonSet"]["spec"]["template"]["spec"]
    [found] = [each for each in pod["containers"] if each["name"] == container]
    script = found["command"][-1]
    if pause is not None:
        script, count = re.subn(r"sleep \$\(\(.*?\)\)", f"sleep {pause}", script)
        assert count == 1
    runs, program, log = tmp_path / "runs", tmp_path / "disksla", tmp_path / "log"
    program.write_text(
        f'#!/bin/sh\n{sys.executable} -m disksla "$@"; status=$?\n'
        f"printf '%s|' \"$@\" >>{runs}; echo >>{runs}; exit $status\n"
    )
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            ["bash", "-c", script], env={"PATH": path}, stderr=errors, start_new_session=True
        )
    with process:
        try:
            least = 1 if pause is None else 2
            assert eventually(lambda: runs.exists() and runs.read_text().count("\n") >= least, 60)
            process.terminate()
            assert process.wait(timeout=60) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                # The pause, if it began; in a container it ends with PID 1.
                os.killpg(process.pid, signal.SIGKILL)
    words = runs.read_text().splitlines()[0].split("|")
    assert words[0] == "detect"
    assert "/var/lib/disksla-detect/" in words[words.index("--output") + 1]
    is_cloud = container == "detect-cloud"
    expected = "cannot read" if is_cloud else "KUBERNETES_SERVICE_HOST is not set"
    assert expected in log.read_text()
    if is_cloud:
        assert words[words.index("--endpoint") + 1] == "https://cinder.example.org/v3/$project"
