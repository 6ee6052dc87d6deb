"""Names of consumers by the paths of groups, of pods, and of programs."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.consumers.names import consumer_of, pod_names_of, program_of

ID = "0123456789ab" + "cd" * 26
OTHER_ID = "ba9876543210" + "ef" * 26
UID = "7d9f1c2e-0a1b-4c3d-8e5f-001122334455"
WITH_UNDERSCORES = UID.replace("-", "_")
STATIC = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
MANAGER = "/user.slice/user-1000.slice/user@1000.service"
PODS = {ID: "shop/checkout-7d9f/app"}
BURSTABLE = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{WITH_UNDERSCORES}"
GUARANTEED = f"/kubepods.slice/kubepods-pod{WITH_UNDERSCORES}.slice"
IN_KIND = f"/docker/{OTHER_ID}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod"


@pytest.mark.parametrize(
    ("path", "consumer"),
    [
        ("", "kernel"),
        ("/", "kernel"),
        ("/init.scope", "init.scope"),
        ("/system.slice/cron.service", "cron.service"),
        (
            "/system.slice/system-postgresql.slice/postgresql@15-main.service",
            "postgresql@15-main.service",
        ),
        (r"/system.slice/system-dm\x2dfoo.slice/a\x2db.service", r"a\x2db.service"),
        ("/system.slice/_cgroup.service", "cgroup.service"),
        ("/system.slice/srv-data.mount", "srv-data.mount"),
        ("/user.slice/user-1000.slice/session-3.scope", "session-3.scope"),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/app-editor.scope",
            "user@1000.service/app-editor.scope",
        ),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/postgresql@15-main.service",
            "user@1000.service/postgresql@15-main.service",
        ),
        (
            "/machine.slice/systemd-nspawn@web.service/payload/system.slice/cron.service",
            "systemd-nspawn@web.service/cron.service",
        ),
        ("/user.slice/user-1000.slice", "user-1000.slice"),
        (f"{MANAGER}/docker-{ID}.scope", "user@1000.service/docker 0123456789ab"),
        (
            f"{MANAGER}/app.slice/kubepods/pod{UID}/{ID}",
            f"user@1000.service/pod {UID}/0123456789ab",
        ),
        (f"{MANAGER}/app.slice/pod{UID}", f"user@1000.service/pod {UID}"),
        (f"{MANAGER}/lxc/database", "user@1000.service/lxc database"),
        (f"{MANAGER}/a.service/user@0.service", "user@1000.service/a.service/user@0.service"),
        (f"{MANAGER}/app.slice", "user@1000.service"),
        ("/system.slice/nginx.service/workers", "nginx.service"),
        (f"/system.slice/docker-{ID}.scope", "docker 0123456789ab"),
        (f"/docker/{ID}", "docker 0123456789ab"),
        (f"/docker/{ID}/init", "docker 0123456789ab"),
        (f"/docker/{ID}/system.slice/a.service", "docker 0123456789ab/a.service"),
        (f"/machine.slice/libpod-{ID}.scope", "podman 0123456789ab"),
        (f"/machine.slice/libpod-{ID}.scope/container", "podman 0123456789ab"),
        (f"/machine.slice/libpod-conmon-{ID}.scope", "podman 0123456789ab"),
        ("/lxc.payload.web", "lxc web"),
        ("/lxc.payload.web/system.slice/postgresql.service", "lxc web/postgresql.service"),
        ("/lxc/db", "lxc db"),
        (f"{BURSTABLE}.slice/cri-containerd-{OTHER_ID}.scope", f"pod {UID}/ba9876543210"),
        (f"{BURSTABLE}.slice/cri-containerd-{ID}.scope", "shop/checkout-7d9f/app"),
        (f"{BURSTABLE}.slice", f"pod {UID}"),
        (f"{GUARANTEED}/crio-{OTHER_ID}.scope", f"pod {UID}/ba9876543210"),
        (f"{GUARANTEED}/crio-{ID}.scope/container", "shop/checkout-7d9f/app"),
        (f"/kubepods/besteffort/pod{UID}/{ID}", "shop/checkout-7d9f/app"),
        (f"/kubepods/pod{UID}/{OTHER_ID}", f"pod {UID}/ba9876543210"),
        (f"/kubepods/burstable/pod{STATIC}/{OTHER_ID}", f"pod {STATIC}/ba9876543210"),
        (
            (
                f"/system.slice/containerd.service/kubepods-burstable-pod{WITH_UNDERSCORES}.slice"
                f":cri-containerd:{OTHER_ID}"
            ),
            f"pod {UID}/ba9876543210",
        ),
        (f"{IN_KIND}{WITH_UNDERSCORES}.slice/cri-containerd-{ID}.scope", "shop/checkout-7d9f/app"),
        (
            f"/docker/{OTHER_ID}/kubelet.slice/kubelet.service",
            "docker ba9876543210/kubelet.service",
        ),
        (f"/ecs/{STATIC}/{ID}", f"ecs {STATIC}/0123456789ab"),
        (f"/system.slice/nerdctl-{ID}.scope", "nerdctl 0123456789ab"),
        (f"/custom/{OTHER_ID}", "container ba9876543210"),
        ("/kubepods.slice", "kubepods.slice"),
        ("/batch/nightly", "/batch/nightly"),
        ("/system.slice/a\x1b[31m\u202eb\n.service", "a[31mb.service"),
    ],
)
def test_consumer_by_the_path_of_its_group(path: str, consumer: str) -> None:
    pods = PODS if "/kube" in path or "kubelet" in path else {}
    assert consumer_of(path, pods) == consumer


@given(
    st.lists(
        st.sampled_from([f"docker-{ID}.scope", ID, "lxc", f"pod{UID}", "a.service", "b.slice"])
        | st.text(st.characters(exclude_characters="/"), min_size=1),
        max_size=6,
    ),
    st.integers(1, 3),
)
def test_what_a_user_names_is_that_users(below: list[str], depth: int) -> None:
    above = ["system.slice", "db.service", "workers"][:depth]
    own = consumer_of("/".join(above))
    name = consumer_of("/".join((*above, *below)), PODS, depth)
    assert name == own or name.startswith(f"{own}/"[:128])
    of_manager = consumer_of("/".join((*MANAGER.split("/"), *below)), PODS)
    assert (of_manager + "/").startswith("user@1000.service/")


@given(st.text(max_size=400))
def test_any_path_has_a_printable_name_of_limited_length(path: str) -> None:
    name = consumer_of(path)
    assert name
    assert name.isprintable()
    assert len(name) <= 128


def test_pods_are_named_by_the_links_that_kubelet_makes() -> None:
    names = [
        f"checkout-7d9f_shop_app-{ID}.log",
        f"etcd-node-1_kube-system_etcd-{OTHER_ID}.log",
        "checkout-7d9f_shop_app-0123.log",
        "README",
    ]
    assert pod_names_of(names) == {
        ID: "shop/checkout-7d9f/app",
        OTHER_ID: "kube-system/etcd-node-1/etcd",
    }


@pytest.mark.parametrize(
    ("comm", "program"),
    [
        ("postgres", "postgres"),
        ("ib_pg_flush_co", "ib_pg_flush_co"),
        ("pool-1-thread-3", "pool-thread"),
        ("iou-wrk-123", "iou-wrk"),
        ("kworker/u16:2-f", "kworker"),
        ("jbd2/vda1-8", "jbd2"),
        ("kswapd0", "kswapd"),
        ("python3.11", "python"),
        ("worker#12", "worker"),
        ("a\x1b[0mb c\n", "a0mbc"),
        ("12345", ""),
    ],
)
def test_program_by_the_name_of_its_thread(comm: str, program: str) -> None:
    assert program_of(comm) == program


@given(st.text(max_size=16), st.integers(0, 10**6))
def test_threads_with_numbers_are_one_program(comm: str, number: int) -> None:
    allowed = {*string.ascii_letters, *string.digits, *"._:@/+-"}
    assert set(program_of(comm)) <= allowed
    assert program_of(f"worker-{number}") == program_of(f"worker{number}") == "worker"
