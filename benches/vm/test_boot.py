"""What the clouds of `make boot` answer, and what is compared. Needs no virtual machine."""

import datetime as dt
from pathlib import Path
from random import Random

import pytest
from prometheus_client.samples import Sample

from clouds.server import Received
from disksla.clouds.detection import exchanges_of
from disksla.clouds.detection.clouds_file import read_clouds_file
from disksla.clouds.http_client.exchange import Request, Response
from support.exchanges import answered, reply
from vm.boot import Seen, differences, read_samples
from vm.clouds import CLOUDS, GIB, answer

NOW = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)
IDS = {"google": "gcp"}
CLOUD = CLOUDS["aws"](Random(1))
LIMITS = CLOUD.disk.limits
assert LIMITS is not None
SEEN = Seen("aws.gp3", "api", tuple(LIMITS[1:]), "m6i.large")


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


def test_expected_limits_are_no_difference() -> None:
    assert list(differences(CLOUD, CLOUD.disk, SEEN)) == []


@pytest.mark.parametrize(
    "seen",
    [
        None,
        SEEN._replace(terms="aws.gp2"),
        SEEN._replace(source="metadata"),
        SEEN._replace(limits=(SEEN.limits[0], SEEN.limits[1], None)),
        SEEN._replace(machine_type=""),
    ],
)
def test_each_difference_is_found(seen: Seen | None) -> None:
    assert len(list(differences(CLOUD, CLOUD.disk, seen))) == 1


def test_samples_of_one_disk_are_read() -> None:
    info = {
        "device": "vda",
        "serial": "a",
        "terms": "t",
        "terms_source": "api",
        "machine_type": "",
    }
    samples = [
        Sample("disksla_disk_info", info, 1.0),
        Sample("disksla_limit_read_iops", {"device": "vda"}, 5.0),
        Sample("disksla_limit_read_iops", {"device": "vdb"}, 6.0),
    ]
    assert read_samples(samples, "a") == Seen("t", "api", (5.0, None, None), "")
    assert read_samples(samples, "b") is None
