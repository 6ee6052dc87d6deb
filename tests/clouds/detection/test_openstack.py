"""What is asked of OpenStack, and how its answers are read; and the file of the credential."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB
from disksla.clouds.detection.clouds_file import read_clouds_file
from disksla.clouds.detection.findings import CloudDisk, Detected
from disksla.clouds.detection.openstack import OpenstackCredentials, detect_openstack
from disksla.clouds.http_client.exchange import Request, Response
from support.exchanges import Answer, answered, disks_of, reply

SERVER = "d8e02d56-2648-49a3-bf97-6be8f1204f38"
CREDENTIALS = OpenstackCredentials("https://keystone.example:5000/v3", "id", "S3CRET", "R1")
METADATA = reply({"uuid": SERVER, "availability_zone": "nova", "devices": []})


def endpoint(url: str, interface: str = "public", region: str = "R1") -> dict[str, Any]:
    return {"interface": interface, "url": url, "region": region, "region_id": region}


def token(*services: dict[str, Any], header: str = "S3CRET-TOKEN") -> Response:
    return reply({"token": {"catalog": services}}, 201, {"x-subject-token": header})


CINDER = "https://cinder.example/v3/p"
TOKEN = token(
    {"type": "identity", "endpoints": []},
    {
        "type": "block-storage",
        "endpoints": [endpoint("https://other/", region="R2"), endpoint(CINDER)],
    },
)


def volume(
    name: str, kind: str | None = "ceph-ssd", server: str | None = SERVER
) -> dict[str, Any]:
    attachments = [{"server_id": server, "device": "/dev/vdb"}] if server else []
    return {"id": name, "size": 100, "volume_type": kind, "attachments": attachments}


def page(*volumes: dict[str, Any], more: bool = False) -> Response:
    links = [{"rel": "next", "href": "http://elsewhere/"}] if more else []
    return reply({"volumes": volumes, "volumes_links": links})


def run(
    *answers: Answer, provider: str = "openstack", **chosen: Any
) -> tuple[Detected, list[Request]]:
    credentials = chosen.get("credentials", CREDENTIALS)
    found, requests = answered(
        detect_openstack(provider, credentials, chosen.get("endpoint")), answers
    )
    assert not any("S3CRET" in problem.message for problem in found.problems)
    return found, requests


def test_volumes_of_all_pages_that_are_attached_to_this_server() -> None:
    found, requests = run(
        METADATA,
        TOKEN,
        page(volume("a1"), volume("b2", server=None), more=True),
        page(volume("c3", "high iops"), volume("d4", server="e-other"), volume("e5", None)),
    )
    assert disks_of(found.api) == (
        CloudDisk("a1", "ceph-ssd", 100 * GIB),
        CloudDisk("c3", "high iops", 100 * GIB),
    )
    [problem] = found.problems
    assert problem.message == "listing of volumes failed: volume e5 has no type"
    assert [(each.method, each.url) for each in requests] == [
        ("GET", "http://169.254.169.254/openstack/latest/meta_data.json"),
        ("POST", "https://keystone.example:5000/v3/auth/tokens"),
        ("GET", f"{CINDER}/volumes/detail?limit=1000"),
        ("GET", f"{CINDER}/volumes/detail?limit=1000&marker=b2"),
    ]
    sent = msgspec.json.decode(requests[1].body)
    assert sent["auth"]["identity"]["application_credential"] == {"id": "id", "secret": "S3CRET"}
    assert requests[2].headers["x-auth-token"] == "S3CRET-TOKEN"


@pytest.mark.parametrize(
    ("auth_url", "provider"),
    [
        ("https://infra.mail.ru:35357/v3/", "vk"),
        ("https://auth.cloud.ovh.net/v3", "ovh"),
        ("https://iam.eu-de.otc.t-systems.com/v3", "huawei"),
        ("https://notmail.ru.example", "openstack"),
    ],
)
def test_provider_follows_from_the_identity_service(auth_url: str, provider: str) -> None:
    credentials = msgspec.structs.replace(CREDENTIALS, auth_url=auth_url, region=None)
    found, requests = run(METADATA, TOKEN, page(), credentials=credentials)
    assert found.provider == provider
    assert requests[1].url.endswith("/v3/auth/tokens")
    assert "/v3/v3" not in requests[1].url
    assert run(METADATA, TOKEN, page(), credentials=credentials, provider="vk")[0].provider == "vk"


def test_endpoint_replaces_the_catalogue() -> None:
    _, requests = run(METADATA, token(), page(), endpoint="https://private/v3/p")
    assert requests[2].url.startswith("https://private/v3/p/volumes/detail?")


def test_former_name_of_cinder() -> None:
    former = {"type": "volumev3", "endpoints": [endpoint(CINDER)]}
    assert run(METADATA, token(former), page())[0].problems == ()


@pytest.mark.parametrize(
    ("answers", "source", "reason", "text"),
    [
        ([reply(status=404)], "metadata", "not_found", ""),
        ([reply({"uuid": "x y"})], "metadata", "invalid", "not a UUID"),
        (
            [METADATA, reply(status=401)],
            "api",
            "denied",
            "Keystone rejected the application credential",
        ),
        ([METADATA, reply(status=404)], "api", "not_found", "no such application credential"),
        ([METADATA, reply(status=500)], "api", "unreachable", ""),
        ([METADATA, token(header="")], "api", "invalid", "no token"),
        ([METADATA, token()], "api", "not_found", "no public endpoint of Cinder in region R1"),
        (
            [METADATA, token({"type": "volumev3", "endpoints": [endpoint("http://cinder")]})],
            "api",
            "invalid",
            "Cinder without",
        ),
        ([METADATA, TOKEN, reply(status=403)], "api", "denied", "with the role reader"),
        ([METADATA, TOKEN, page(volume("/"))], "api", "invalid", "no id"),
        ([METADATA, TOKEN, page(volume("a1"), more=True), reply("x")], "api", "invalid", ""),
    ],
)
def test_failures(answers: list[Answer], source: str, reason: str, text: str) -> None:
    found, _ = run(*answers)
    [problem] = found.problems
    assert (problem.source, problem.reason) == (source, reason)
    assert text in problem.message


def test_no_region_and_no_credential() -> None:
    anywhere = msgspec.structs.replace(CREDENTIALS, region=None)
    [problem] = run(METADATA, token(), credentials=anywhere)[0].problems
    assert "in any region" in problem.message
    [problem] = run(METADATA, credentials=None)[0].problems
    assert (problem.reason, "LoadCredential=" in problem.message) == ("no_credentials", True)


def test_empty_page_is_the_last() -> None:
    assert run(METADATA, TOKEN, page(more=True))[0].problems == ()


def test_expired_token_is_fetched_again() -> None:
    found, _ = run(METADATA, TOKEN, reply(status=401), TOKEN, page(volume("a1")))
    assert found.api is not None
    assert found.problems == ()


@given(st.binary(max_size=200), st.integers(0, 2))
def test_any_answer_is_volumes_or_a_problem(data: bytes, good: int) -> None:
    before = [METADATA, TOKEN][:good]
    answers = iter([*before, *[reply(data, headers={"x-subject-token": "x"})] * 9])
    found, _ = answered(detect_openstack("vk", CREDENTIALS, None), lambda _: next(answers))
    assert found.problems or found.api is not None


GOOD = """
clouds:
  mine:
    profile: x
    auth:
      auth_url: "https://k/v3"
      application_credential_id: I
      application_credential_secret: S3CRET
    region_name: R1
    auth_type: v3applicationcredential
"""


def test_clouds_file(tmp_path: Path) -> None:
    file = tmp_path / "clouds.yaml"
    file.write_text(GOOD)
    found = read_clouds_file(file)
    assert found == OpenstackCredentials("https://k/v3", "I", "S3CRET", "R1")
    assert "S3CRET" not in repr(found)
    link = tmp_path / "link"
    link.symlink_to(file)
    assert read_clouds_file(link) == found


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", ""),
        ("[" * 5000, ""),
        ("a: S3CRET: b", "line 1"),
        ("a: &b [*b, S3CRET]\n", ""),
        ("!!python/object:os.system S3CRET", "line 1"),
        ("\x00S3CRET", ""),
        ("clouds: {}", ""),
        (GOOD + GOOD.split("\n", 2)[2].replace("mine", "other"), ""),
        (GOOD.replace("application_credential_secret", "password"), "$.clouds[...].auth"),
        (GOOD.replace("https://k/v3", "ftp://S3CRET"), "auth.auth_url"),
        (GOOD.replace("_id: I", "_id: [S3CRET]"), "application_credential_id"),
        ("#" * 70_000 + "S3CRET", ""),
    ],
)
def test_wrong_clouds_file_is_not_quoted(text: str, where: str, tmp_path: Path) -> None:
    file = tmp_path / "clouds.yaml"
    file.write_text(text)
    with pytest.raises(DiskslaError) as raised:
        read_clouds_file(file)
    message = str(raised.value)
    assert "S3CRET" not in message
    assert message.startswith(str(file))
    assert where in message
    assert "application_credential_secret" in message


def test_clouds_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match=r"cannot read .*: No such file"):
        read_clouds_file(tmp_path / "none")
