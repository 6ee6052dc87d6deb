"""What is asked of AWS, and how its answers are read. Answers are the samples of its documents."""

import datetime as dt
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.clouds.detection.aws import AwsCredentials, detect_aws, signed
from disksla.clouds.detection.findings import Detected
from disksla.clouds.http_client.exchange import ExchangeError, Request, Response
from support.exchanges import Answer, answered, disks_of, reply

NOW = dt.datetime(2026, 9, 21, 14, 13, 20, tzinfo=dt.UTC)
KEYS = {"AccessKeyId": "ASIAKEY", "SecretAccessKey": "S3CRET", "Token": "T0KEN"}
METADATA = [reply("imds-token"), reply("i-0abc"), reply("eu-central-1"), reply("m5.large")]
ROLE = [reply("disksla\n"), reply(KEYS)]
DATE = {"date": "Mon, 21 Sep 2026 14:13:21 GMT"}


def volume(**values: Any) -> str:
    attached = values.pop("instance", "i-0abc")
    fields = "".join(f"<{name}>{value}</{name}>" for name, value in values.items())
    return (
        f"<item>{fields}<attachmentSet><item><instanceId>{attached}</instanceId>"
        "<device>/dev/sdf</device></item></attachmentSet></item>"
    )


def page(*volumes: str, mark: str = "") -> Response:
    following = f"<nextToken>{mark}</nextToken>" if mark else ""
    return reply(
        '<?xml version="1.0"?>\n<DescribeVolumesResponse'
        ' xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><volumeSet>'
        f"{''.join(volumes)}</volumeSet>{following}</DescribeVolumesResponse>"
    )


def rejected(code: str, status: int = 403, date: str = DATE["date"]) -> Response:
    error = f"<Error><Code>{code}</Code><Message>S3CRET</Message></Error>"
    body = f"<Response><Errors>{error}</Errors></Response>"
    return reply(body, status, {"date": date})


def run(*answers: Answer, endpoint: str | None = None) -> tuple[Detected, list[Request]]:
    return answered(detect_aws(endpoint, NOW), answers)


def problem_of(*answers: Answer) -> tuple[str, str, str]:
    detected, _ = run(*answers)
    [problem] = detected.problems
    assert "S3CRET" not in problem.message
    return problem.source, problem.reason, problem.message


def test_signature_is_that_of_the_documented_example() -> None:
    """The example of the IAM user guide (signing a GET of iam:ListUsers)."""
    content = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    url = "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08"
    keys = AwsCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    moment = dt.datetime(2015, 8, 30, 12, 36, tzinfo=dt.UTC)
    request = signed(Request("x", "api", "GET", url, content), keys, "us-east-1/iam", moment)
    assert request.headers["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request,"
        " SignedHeaders=content-type;host;x-amz-date,"
        " Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    )
    assert "x-amz-security-token" not in request.headers
    assert "wJalr" not in repr(keys)


def test_requests() -> None:
    _, requests = run(*METADATA, *ROLE, page())
    token, *others, api = requests
    assert (token.method, token.url) == ("PUT", "http://169.254.169.254/latest/api/token")
    assert token.headers == {"x-aws-ec2-metadata-token-ttl-seconds": "60"}
    assert [
        each.url.removeprefix("http://169.254.169.254/latest/meta-data/") for each in others
    ] == [
        "instance-id",
        "placement/region",
        "instance-type",
        "iam/security-credentials/",
        "iam/security-credentials/disksla",
    ]
    assert {each.headers["x-aws-ec2-metadata-token"] for each in others} == {"imds-token"}
    assert (api.method, api.url) == ("POST", "https://ec2.eu-central-1.amazonaws.com/")
    assert api.headers["x-amz-security-token"] == "T0KEN"
    assert parse_qs(api.body.decode()) == {
        "Action": ["DescribeVolumes"],
        "Version": ["2016-11-15"],
        "Filter.1.Name": ["attachment.instance-id"],
        "Filter.1.Value.1": ["i-0abc"],
        "MaxResults": ["500"],
    }


def test_endpoints() -> None:
    china = [METADATA[0], METADATA[1], reply("cn-north-1"), METADATA[3]]
    assert run(*china, *ROLE, page())[1][-1].url == "https://ec2.cn-north-1.amazonaws.com.cn/"
    _, requests = run(*METADATA, *ROLE, page(), endpoint="https://vpce.example.com/x")
    assert requests[-1].url == "https://vpce.example.com/x/"


def test_volumes_of_all_pages() -> None:
    first = page(
        volume(volumeId="vol-1", volumeType="gp3", size=500, iops=6000, throughput=250),
        volume(volumeId="vol-2", volumeType="gp2", size=100, iops=300),
        mark="more==",
    )
    second = page(
        volume(volumeId="vol-3", volumeType="io2", size=10, iops=900),
        volume(volumeId="vol-9", volumeType="st1", size=500, instance="i-other"),
    )
    detected, requests = run(*METADATA, *ROLE, first, second)
    assert detected.api is not None
    found = [
        (disk.volume, disk.api_type, disk.size_bytes, disk.iops, disk.bytes_per_second)
        for disk in detected.api.disks
    ]
    assert found == [
        ("vol-1", "gp3", 500 * 2**30, 6000, 250 * 2**20),
        ("vol-2", "gp2", 100 * 2**30, None, None),
        ("vol-3", "io2", 10 * 2**30, 900, None),
    ]
    assert parse_qs(requests[-1].body.decode())["NextToken"] == ["more=="]
    assert (detected.machine_type, detected.problems) == ("m5.large", ())


def test_absent_provisioned_value_is_unknown_and_hides_no_other() -> None:
    good = volume(volumeId="vol-1", volumeType="sc1")
    detected, _ = run(
        *METADATA, *ROLE, page(volume(volumeId="vol-2", volumeType="gp3", iops=0), good)
    )
    [disk], [problem] = disks_of(detected.api), detected.problems
    assert (disk.volume, disk.size_bytes) == ("vol-1", None)
    assert problem.reason == "not_found"
    assert "vol-2 of type gp3 has no iops or throughput" in problem.message


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([ExchangeError("timeout", "5 s")], ("metadata", "timeout", "raise the hop limit")),
        ([ExchangeError("unreachable", "x")], ("metadata", "unreachable", "hop limit")),
        ([reply(status=403)], ("metadata", "denied", "enable it (HttpEndpoint)")),
        ([reply(status=404)], ("metadata", "not_found", "not that of EC2")),
        ([reply("<html>\nSorry")], ("metadata", "invalid", "not that of EC2")),
        ([reply(b"\xff")], ("metadata", "invalid", "not that of EC2")),
        ([reply(status=302)], ("metadata", "redirected", "not followed")),
        ([*METADATA[:2], reply("eu-central-1.evil.example/")], ("metadata", "invalid", "EC2")),
        ([*METADATA, reply(status=404)], ("api", "not_found", "give it an instance profile")),
        ([*METADATA, ROLE[0], reply({})], ("api", "invalid", "not what the provider")),
        (
            [*METADATA, ROLE[0], reply(KEYS | {"Token": "a\nb"})],
            ("api", "invalid", "not that of EC2"),
        ),
    ],
)
def test_failures_of_the_metadata(answers: list[Answer], expected: tuple[str, str, str]) -> None:
    source, reason, message = problem_of(*answers)
    assert (source, reason) == expected[:2]
    assert expected[2] in message


@pytest.mark.parametrize(
    ("answer", "reason", "text"),
    [
        (
            rejected("UnauthorizedOperation"),
            "denied",
            "denied to role disksla; add it to the policy",
        ),
        (
            rejected("AuthFailure", 401),
            "denied",
            "rejected the credentials of role disksla (AuthFailure)",
        ),
        (rejected("RequestLimitExceeded", 503), "throttled", "repeated at the next run"),
        (rejected("InternalError", 500), "unreachable", "HTTP 500"),
        (
            rejected("AuthFailure", 401, "Mon, 21 Sep 2026 14:33:20 GMT"),
            "clock",
            "20 minutes behind",
        ),
        (reply("junk", 400), "invalid", "HTTP 400"),
        (reply("junk"), "invalid", "not that of EC2"),
        (reply('<!DOCTYPE a [<!ENTITY b "S3CRET">]><a>&b;</a>'), "invalid", "not that of EC2"),
        (reply('<?xml version="1.0" encoding="nothing"?><a/>'), "invalid", "not that of EC2"),
        (page(volume(volumeType="gp3")), "invalid", "no id or no type"),
        (page(volume(volumeId="vol-1", volumeType="g p")), "invalid", "no id or no type"),
        (ExchangeError("too_large", "32 MiB"), "too_large", "DescribeVolumes failed: 32 MiB"),
    ],
)
def test_failures_of_the_api(answer: Answer, reason: str, text: str) -> None:
    source, found, message = problem_of(*METADATA, *ROLE, answer)
    assert (source, found) == ("api", reason)
    assert text in message


def test_expired_credentials_are_fetched_again() -> None:
    expired = rejected("ExpiredToken", 400)
    good = page(volume(volumeId="vol-1", volumeType="st1", size=500))
    detected, _ = run(*METADATA, *ROLE, expired, *ROLE, good)
    assert detected.problems == ()
    assert problem_of(*METADATA, *ROLE, expired, *ROLE, expired)[1] == "expired"


@given(st.binary(max_size=300))
def test_any_answer_of_the_api_is_volumes_or_a_problem(data: bytes) -> None:
    for body in (data, b"<a><volumeSet><item>" + data + b"</item></volumeSet></a>"):
        detected, _ = run(*METADATA, *ROLE, reply(body))
        assert detected.api is not None or detected.problems
