"""The daemon with a helper that says that an idle disk is throttled half of the time."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from disksla.clouds.ebs_statistics.reading import Reading, encode
from disksla.clouds.ebs_statistics.statistics_page import parse
from support.daemon_process import PATIENCE_S, Daemon, run
from support.ebs_pages import Page
from support.sysfs_tree import add_device
from support.waiting import eventually

READ_EVERY_S = 0.2


@pytest.fixture
def helper(tmp_path: Path) -> Iterator[Path]:
    """Yield the socket of a helper that reads the page of nvme1n1 from now on."""
    path, stopping = tmp_path / "ebs.sock", threading.Event()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        server.settimeout(PATIENCE_S)
        thread = threading.Thread(target=_serve, args=(server, stopping))
        thread.start()
        yield path
        stopping.set()
        thread.join()


def _serve(server: socket.socket, stopping: threading.Event) -> None:
    client, _ = server.accept()
    begin_s = time.monotonic()
    with client:
        while not stopping.wait(READ_EVERY_S):
            now_s = time.monotonic()
            page = Page(instance_exceeded_iops_us=round((now_s - begin_s) * 5e5)).written()
            client.sendall(encode(Reading("nvme1n1", "vol0a1b", now_s, parse(page))))


def test_agreement_is_published_and_examined(
    start_daemon: Callable[..., Daemon], tmp_path: Path, helper: Path
) -> None:
    add_device(tmp_path / "sys", "block/nvme1n1", "259:0", 2**30)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "diskstats").write_text(f"   259       0 nvme1n1{' 0' * 17}\n")
    (tmp_path / "disksla.yml").write_text(f"ebs: {{socket: {helper}}}\n")
    paths = {"config.file": "disksla.yml", "path.procfs": "proc", "path.sysfs": "sys"}
    flags = [f"--{option}={tmp_path / name}" for option, name in paths.items()]
    daemon = start_daemon(*flags)

    def seconds(provider_limit: str) -> float:
        labels = {"limit": "none", "provider_limit": provider_limit}
        name = "disksla_provider_agreement_seconds_total"
        return daemon.samples(device="nvme1n1", **labels).get(name, 0.0)

    assert eventually(lambda: seconds("machine_iops") > 1.0, PATIENCE_S)
    theirs_s, none_s = seconds("machine_iops"), seconds("none")
    assert theirs_s == pytest.approx(none_s, rel=0.5)
    counted = daemon.samples(device="nvme1n1", limit="machine_iops")
    assert counted["disksla_provider_throttled_seconds_total"] >= theirs_s

    explained = run("explain", "nvme1n1", "--url", f"http://{daemon.address}", *flags)
    text = " ".join(explained.stdout.split())
    assert "The provider counts how long it throttles this disk: of " in text
    assert " s by the IOPS of the machine. " in text
    examined = run("doctor", "--url", f"http://{daemon.address}/metrics", *flags, status=1)
    text = " ".join(examined.stdout.split())
    assert "nvme1n1: throttled for" in text
    assert "compared with the provider's count" in text
