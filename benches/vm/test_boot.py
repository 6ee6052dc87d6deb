"""What the clouds of `make boot` answer. Needs no virtual machine."""

import datetime as dt
from pathlib import Path
from random import Random

import pytest

from clouds.server import Received
from disksla.clouds.detection import exchanges_of
from disksla.clouds.detection.clouds_file import read_clouds_file
from disksla.clouds.http_client.exchange import Request, Response
from support.exchanges import answered, reply
from vm.clouds import CLOUDS, GIB, answer

NOW = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)
IDS = {"google": "gcp"}


@pytest.mark.parametrize("name", CLOUDS)
def test_answers_describe_the_disks(name: str, tmp_path: Path) -> None:
    cloud = CLOUDS[name](Random(1))
    credentials = None
    if cloud.credentials:
        (tmp_path / "clouds.yaml").write_text(cloud.credentials)
        credentials = read_clouds_file(tmp_path / "clouds.yaml")

    def answer_to(request: Request) -> Response:
        host, _, path = request.url.partition("://")[2].partition("/")
        assert host in {"169.254.169.254", cloud.api[0], ":".join(map(str, cloud.api))}
        given = answer(cloud, Received(request.method, f"/{path}", {}, b""))
        return reply(given.body, given.status, given.headers)

    asked = exchanges_of(IDS.get(name, name), now=NOW, credentials=credentials)
    found, _ = answered(asked, answer_to)
    assert (found.machine_type or "") == cloud.machine_type
    if cloud.disk.limits is None:
        return
    assert found.problems == ()
    assert found.api is not None
    sizes = {disk.size_bytes for disk in found.api.disks}
    expected = {disk.size_gib * GIB for disk in (cloud.disk, cloud.later) if disk is not None}
    assert expected == sizes
