"""Finding the control groups: which hierarchy, their names, and how often."""

import os
from pathlib import Path

import pytest

from disksla.kernel.consumers.groups import Groups, Hierarchy, find_hierarchy
from support.cgroup_tree import CgroupTree

ID = "0123456789ab" + "cd" * 26
UID = "7d9f1c2e-0a1b-4c3d-8e5f-001122334455"


TREES = sorted((Path(__file__).parent / "trees").glob("*.txt"))
"""Groups of machines as they were published, with the consumer that each is: the first lines of a
file say where. `log` is a link of kubelet in /var/log/containers."""


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_io_is_counted_where_its_controller_is_on(tmp_path: Path) -> None:
    tree = CgroupTree(tmp_path)
    assert find_hierarchy(tmp_path) == Hierarchy(tree.root)


def test_io_is_off_by_default(tmp_path: Path) -> None:
    tree = CgroupTree(tmp_path)
    (tree.root / "cgroup.subtree_control").write_text("memory pids\n")
    found = find_hierarchy(tmp_path)
    assert found.root == tree.root
    assert found.why_not is not None
    assert found.why_not.startswith(
        "the controller io of the control groups is off; IOAccounting=yes"
    )


def test_groups_of_a_container_are_not_those_of_the_machine(tmp_path: Path) -> None:
    tree = CgroupTree(tmp_path)
    (tree.root / "cgroup.type").write_text("domain\n")
    why_not = f"{tree.root} has the groups of a container only; mount that of the host there"
    assert find_hierarchy(tmp_path) == Hierarchy(None, why_not)


@pytest.mark.parametrize(
    ("directories", "controllers", "why_not"),
    [
        ([], None, "there are no control groups at"),
        (["fs/cgroup/blkio"], None, "the machine has cgroup v1, which does not count it; boot"),
        (
            ["fs/cgroup/blkio", "fs/cgroup/unified"],
            "",
            "the machine has cgroup v1 (hybrid), which",
        ),
        (["fs/cgroup/unified"], "memory", "have no controller io"),
    ],
)
def test_other_hierarchies_are_said(
    tmp_path: Path, directories: list[str], controllers: str | None, why_not: str
) -> None:
    for directory in directories:
        (tmp_path / directory).mkdir(parents=True)
    if controllers is not None:
        (tmp_path / "fs/cgroup/unified/cgroup.controllers").write_text(controllers)
    found = find_hierarchy(tmp_path)
    assert found.root is None
    assert why_not in (found.why_not or "")


def test_io_of_a_hybrid_hierarchy_may_be_with_v2(tmp_path: Path) -> None:
    unified = tmp_path / "fs/cgroup/unified"
    unified.mkdir(parents=True)
    for name in ("cgroup.controllers", "cgroup.subtree_control"):
        (unified / name).write_text("io\n")
    assert find_hierarchy(tmp_path) == Hierarchy(unified)


def test_names_by_the_inode_of_the_directory(tmp_path: Path) -> None:
    tree = CgroupTree(tmp_path)
    pod = f"kubepods/burstable/pod{UID}/{ID}"
    tree.make("system.slice/cron.service", pod)
    logs = tmp_path / "var/log/containers"
    logs.mkdir(parents=True)
    (logs / f"checkout-7d9f_shop_app-{ID}.log").symlink_to("/nonexistent")
    groups = Groups(tree.roots, Clock())
    cron = (tree.root / "system.slice/cron.service").stat().st_ino
    assert groups.name_of(cron) is None
    assert groups.scan(tree.root)
    assert groups.name_of(cron) == "cron.service"
    assert groups.name_of((tree.root / pod).stat().st_ino) == "shop/checkout-7d9f/app"
    assert groups.name_of(tree.root.stat().st_ino) == "kernel"


@pytest.mark.parametrize("path", TREES, ids=lambda path: path.stem)
def test_names_of_the_groups_of_machines(path: Path, tmp_path: Path) -> None:
    lines = [line for line in path.read_text("ascii").splitlines() if not line.startswith("#")]
    links = [line.removeprefix("log ") for line in lines if line.startswith("log ")]
    consumers = dict(line.split(" = ") for line in lines if line.startswith("/"))
    tree = CgroupTree(tmp_path)
    tree.make(*(group.removeprefix("/") for group in consumers))
    logs = tmp_path / "var/log/containers"
    logs.mkdir(parents=True)
    for link in links:
        (logs / link).symlink_to("/nonexistent")
    groups = Groups(tree.roots, Clock())
    assert groups.scan(tree.root)
    inodes = {group: Path(f"{tree.root}{group}").stat().st_ino for group in consumers}
    assert {group: groups.name_of(inode) for group, inode in inodes.items()} == consumers


def test_names_of_groups_that_ended_are_remembered_for_an_hour(tmp_path: Path) -> None:
    tree, clock = CgroupTree(tmp_path), Clock()
    tree.make("system.slice/cron.service")
    groups = Groups(tree.roots, clock)
    groups.scan(tree.root)
    cron = (tree.root / "system.slice/cron.service").stat().st_ino
    tree.remove("system.slice/cron.service")
    clock.now_s += 2.0
    assert groups.scan(tree.root)
    assert groups.name_of(cron) == "cron.service"
    clock.now_s += 3600.0
    assert groups.scan(tree.root)
    assert groups.name_of(cron) is None


def test_scans_are_a_second_apart_and_take_a_fiftieth_of_the_time(tmp_path: Path) -> None:
    tree = CgroupTree(tmp_path)
    tree.make("system.slice/cron.service")
    times_s = iter([100.0, 100.0, 100.5, 101.0, 102.0, 102.5, 104.0])
    groups = Groups(tree.roots, lambda: next(times_s))
    assert groups.scan(tree.root)  # 100.0 to 100.0
    assert not groups.scan(tree.root)  # 100.5
    assert groups.scan(tree.root)  # 101.0 to 102.0
    assert not groups.scan(tree.root)  # 102.5
    assert not groups.scan(tree.root)  # 104.0


def test_a_group_stands_for_those_that_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disksla.kernel.consumers.groups.MOST_SCANNED", 50)
    tree = CgroupTree(tmp_path)
    tree.make("user.slice", "system.slice")
    for number in range(50):
        (tree.root / "system.slice" / f"{number}.service").mkdir()
    groups = Groups(tree.roots)
    assert groups.scan(tree.root)
    found = groups.tree.groups.values()
    assert sorted(group.path for group in found) == ["", "/system.slice", "/user.slice"]


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root gives groups away")
def test_groups_of_a_user_neither_pass_for_others_nor_hide_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disksla.kernel.consumers.groups.MOST_SCANNED", 100)
    tree = CgroupTree(tmp_path)
    pods = [f"kubepods/burstable/pod{UID}/{number:064x}" for number in range(30)]
    given = "system.slice/db.service"
    tree.make(*pods, f"{given}/docker-{ID}.scope")
    tree.make(*(f"{given}/{number}" for number in range(5)), *(f"a/{n}/{n}" for n in range(30)))
    os.chown(tree.root / "a", 1001, -1)
    for path in (tree.root / given, *(tree.root / "a").rglob("*")):
        os.chown(path, 1000, -1)
    logs = tmp_path / "var/log/containers"
    logs.mkdir(parents=True)
    (logs / f"checkout-7d9f_shop_app-{ID}.log").symlink_to("/nonexistent")
    groups = Groups(tree.roots)
    assert groups.scan(tree.root)
    named = {group.path: groups.name_of(group.id) for group in groups.tree.groups.values()}
    assert [named[f"/{pod}"] for pod in pods] == [f"pod {UID}/{'0' * 12}"] * 30
    assert named[f"/{given}/docker-{ID}.scope"] == f"db.service/docker {ID[:12]}"
    assert not [path for path in named if path.startswith("/a/")], "more than a tenth"
    leaves = {group.path for group in groups.tree.leaves(40)}
    assert leaves >= {f"/{pod}" for pod in pods}


def test_a_root_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    groups = Groups(CgroupTree(tmp_path).roots)
    with pytest.raises(OSError, match="No such file"):
        groups.scan(tmp_path / "nonexistent")
