"""`disksla detect` against moto's EC2, which checks signatures and policies.

The volumes are random. The metadata service is the test's own, made from the EC2 user guide, with
credentials of moto's STS: moto's own has constant credentials, which moto itself rejects.
"""

import contextlib
import json
import random
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clouds.namespace import Namespace
from clouds.server import Received, Reply, serving
from support.waiting import eventually

pytestmark = pytest.mark.alone  # one server for all tests

REGION = "eu-central-1"
PORT = 5000
LENIENT_PORT = 5001
ENDPOINT = f"http://127.0.0.1:{PORT}"
SEED = 20261123
ROLE = "disksla"
GP3 = {"VolumeType": "gp3", "Size": 200, "Iops": 4000, "Throughput": 250}


def policy(*actions: str, **others: Any) -> str:
    others = others or {"Resource": "*"}
    statement = {"Effect": "Allow", "Action": actions, **others}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


class Moto:
    """A server of moto, and calls to it by boto3."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.keys: list[str] | None = None
        """Of the administrator, once moto checks them."""
        self.image = ""

    def call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps([service, operation, parameters, self.keys])
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"{service}.{operation} failed"
        found: dict[str, Any] = json.loads(answer)
        return found

    def role_keys(self) -> dict[str, str]:
        """Return new credentials of the role, as the metadata service has them."""
        arn = self.call("iam", "get_role", RoleName=ROLE)["Role"]["Arn"]
        session = self.call("sts", "assume_role", RoleArn=arn, RoleSessionName="i-0")
        found = session["Credentials"]
        return {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "AccessKeyId": found["AccessKeyId"],
            "SecretAccessKey": found["SecretAccessKey"],
            "Token": found["SessionToken"],
            "Expiration": (datetime.now(UTC) + timedelta(hours=6)).isoformat(),
        }


class Cloud:
    """The metadata service of one instance, and moto's API beside it."""

    def __init__(self, namespace: Namespace, moto: Moto, instance_id: str) -> None:
        self.namespace = namespace
        self.moto = moto
        self.instance_id = instance_id
        self.keys = moto.role_keys()
        self.tokens: set[str] = set()

    def metadata(self, request: Received) -> Reply:
        """Answer as the metadata service does (EC2 user guide, IMDSv2)."""
        if (request.method, request.path) == ("PUT", "/latest/api/token"):
            if "x-aws-ec2-metadata-token-ttl-seconds" not in request.headers:
                return Reply(400)
            self.tokens.add(f"token-{len(self.tokens)}==")
            return Reply(body=f"token-{len(self.tokens) - 1}==".encode())
        if request.headers.get("x-aws-ec2-metadata-token") not in self.tokens:
            return Reply(401)
        values = {
            "instance-id": self.instance_id,
            "instance-type": "m5.large",
            "placement/region": REGION,
            "iam/security-credentials/": ROLE,
            f"iam/security-credentials/{ROLE}": json.dumps(self.keys),
        }
        value = values.get(request.path.removeprefix("/latest/meta-data/"))
        return Reply(404) if value is None else Reply(body=value.encode())

    def detect(self, *arguments: str | Path) -> Any:
        """Run `disksla detect`; what it prints and writes has no secret."""
        chosen = ("--provider", "aws", "--endpoint", ENDPOINT, *arguments)
        with serving(self.namespace.listen(80), self.metadata):
            ended = self.namespace.detect(*chosen)
        for secret in (self.keys["SecretAccessKey"], self.keys["Token"], *self.tokens):
            assert secret not in ended.output
        return ended


@pytest.fixture(scope="module")
def moto(namespace: Namespace, moto_environment: Path) -> Iterator[Moto]:
    """Yield a server that checks every signature and every policy."""
    with running(namespace, moto_environment, PORT) as made:
        set_up(made)
        enforce(namespace)
        yield made


@pytest.fixture(scope="module")
def lenient(namespace: Namespace, moto_environment: Path) -> Iterator[Moto]:
    """Yield a server that checks nothing: moto rejects every signature of a GET with a query."""
    with running(namespace, moto_environment, LENIENT_PORT) as made:
        yield made


@contextlib.contextmanager
def running(namespace: Namespace, moto_environment: Path, port: int) -> Iterator[Moto]:
    program = (moto_environment / "bin" / "moto_server", "-H", "127.0.0.1", "-p", str(port))
    python = moto_environment / "bin" / "python"
    endpoint = f"http://127.0.0.1:{port}"
    session = (python, Path(__file__).with_name("boto_session.py"), endpoint, REGION)
    with (
        subprocess.Popen(
            namespace.inside(*program), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as server,
        subprocess.Popen(
            namespace.inside(*session), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            assert eventually(lambda: is_up(namespace, endpoint), 60), "moto did not start"
            yield Moto(process)
        finally:
            for each in (process, server):
                each.terminate()


def curl(namespace: Namespace, *arguments: str) -> int:
    command = namespace.inside("curl", "--silent", "--output", "/dev/null", *arguments)
    return subprocess.run(command, check=False).returncode


def is_up(namespace: Namespace, endpoint: str) -> bool:
    return curl(namespace, f"{endpoint}/moto-api/") == 0


def enforce(namespace: Namespace) -> None:
    """Check signatures and policies from now on."""
    zero = ("--header", "content-type: text/plain", "--data", "0")
    assert curl(namespace, "--fail", *zero, f"{ENDPOINT}/moto-api/reset-auth") == 0


def set_up(moto: Moto) -> None:
    """Create an administrator, and the role of the instance."""
    user = moto.call("iam", "create_user", UserName="administrator")["User"]
    moto.call(
        "iam",
        "put_user_policy",
        UserName="administrator",
        PolicyName="everything",
        PolicyDocument=policy("*"),
    )
    key = moto.call("iam", "create_access_key", UserName="administrator")["AccessKey"]
    trust = policy("sts:AssumeRole", Principal={"AWS": user["Arn"]})
    moto.call("iam", "create_role", RoleName=ROLE, AssumeRolePolicyDocument=trust)
    permit(moto, "ec2:DescribeVolumes")
    moto.image = moto.call("ec2", "describe_images", Owners=["amazon"])["Images"][0]["ImageId"]
    moto.keys = [key["AccessKeyId"], key["SecretAccessKey"]]


def permit(moto: Moto, *actions: str) -> None:
    moto.call(
        "iam",
        "put_role_policy",
        RoleName=ROLE,
        PolicyName="disksla",
        PolicyDocument=policy(*actions),
    )


@pytest.fixture
def cloud(namespace: Namespace, moto: Moto) -> Iterator[Cloud]:
    """Yield a new instance, with a root volume only."""
    started = moto.call(
        "ec2", "run_instances", ImageId=moto.image, InstanceType="m5.large", MinCount=1, MaxCount=1
    )
    yield Cloud(namespace, moto, started["Instances"][0]["InstanceId"])
    permit(moto, "ec2:DescribeVolumes")


def random_volume(random_: random.Random) -> dict[str, Any]:
    """Return the parameters of a volume within the bounds of EC2."""
    kind = random_.choice(("gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"))
    size = random_.randint(125, 1000)
    wanted: dict[str, Any] = {"VolumeType": kind, "Size": size}
    if kind in {"gp3", "io1", "io2"}:
        wanted["Iops"] = random_.randint(3000, 50 * size if kind != "gp3" else 16000)
    if kind == "gp3":
        wanted["Throughput"] = random_.randint(125, 750)
    return wanted


def attach(cloud: Cloud, wanted: dict[str, Any], letter: str) -> str:
    created = cloud.moto.call("ec2", "create_volume", AvailabilityZone=f"{REGION}a", **wanted)
    volume: str = created["VolumeId"]
    cloud.moto.call(
        "ec2",
        "attach_volume",
        VolumeId=volume,
        InstanceId=cloud.instance_id,
        Device=f"/dev/sd{letter}",
    )
    return volume


def expected(volume: str, wanted: dict[str, Any]) -> dict[str, Any]:
    entry = {
        "match": {"volume": volume},
        "api_type": wanted["VolumeType"],
        "size": f"{wanted['Size']}GiB",
    }
    if "Iops" in wanted:
        entry["iops"] = wanted["Iops"]
    if "Throughput" in wanted:
        entry["bandwidth"] = f"{wanted['Throughput']}MiB/s"
    return entry


def by_volume(file: dict[str, Any]) -> dict[str, Any]:
    return {disk["match"]["volume"]: disk for disk in file["disks"]}


def root_volume(cloud: Cloud) -> dict[str, Any]:
    """Return the entry of the volume from which moto started the instance."""
    filters = [{"Name": "attachment.instance-id", "Values": [cloud.instance_id]}]
    [found] = cloud.moto.call("ec2", "describe_volumes", Filters=filters)["Volumes"]
    return expected(found["VolumeId"], found)


def test_random_volumes_are_found(cloud: Cloud, tmp_path: Path) -> None:
    random_ = random.Random(SEED)
    root = root_volume(cloud)
    entries = {root["match"]["volume"]: root}
    for letter in "fghijklmnop":
        wanted = random_volume(random_)
        volume = attach(cloud, wanted, letter)
        entries[volume] = expected(volume, wanted)
    cloud.moto.call(  # of another machine
        "ec2", "create_volume", AvailabilityZone=f"{REGION}a", **random_volume(random_)
    )
    output = tmp_path / "cloud.json"
    ended = cloud.detect("--output", output)
    assert ended.status == 0, ended.output
    assert by_volume(ended.file) == entries
    assert ended.file["machine"] == {"type": "m5.large"}
    assert (ended.file["source"], ended.file["origin"]) == ("api", "EC2 API")
    assert output.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["cloud.json"]


def test_volume_that_is_attached_or_modified_later_is_found_by_the_next_run(
    cloud: Cloud, tmp_path: Path
) -> None:
    output = tmp_path / "cloud.json"
    volume = attach(cloud, GP3, "f")
    assert by_volume(cloud.detect("--output", output).file)[volume]["iops"] == 4000
    cloud.moto.call("ec2", "modify_volume", VolumeId=volume, Iops=9000, Size=300)
    other = attach(cloud, {"VolumeType": "st1", "Size": 500}, "g")
    found = by_volume(cloud.detect("--output", output).file)
    assert (found[volume]["iops"], found[volume]["size"]) == (9000, "300GiB")
    assert found[other]["api_type"] == "st1"


def test_denied_permission_is_named_and_the_last_file_is_kept(
    cloud: Cloud, tmp_path: Path
) -> None:
    output = tmp_path / "cloud.json"
    attach(cloud, GP3, "f")
    good = cloud.detect("--output", output).file
    permit(cloud.moto, "ec2:DescribeInstances")
    ended = cloud.detect("--output", output)
    assert ended.status == 1
    assert ended.reasons == [("api", "denied")]
    assert (
        "disksla: DescribeVolumes failed: ec2:DescribeVolumes was denied to role disksla;"
        " add it to the policy of the role\n"
    ) in ended.output
    assert ended.file["disks"] == good["disks"]
    assert ended.file["as_of"] == good["as_of"]
    assert ended.file["tried_at"] >= good["tried_at"]


@pytest.mark.parametrize("name", ["SecretAccessKey", "Token", "AccessKeyId"])
def test_rejected_credentials(cloud: Cloud, name: str) -> None:
    cloud.keys[name] = cloud.keys[name][:-4] + "0000"
    ended = cloud.detect()
    assert ended.status == 1
    assert ended.reasons == [("api", "denied")]
    assert "AWS rejected the credentials of role disksla (AuthFailure)" in ended.output
    assert ended.file["machine"] == {"type": "m5.large"}


def efs(moto: Moto, **values: Any) -> str:
    """Return the source by which a new file system is mounted."""
    token = f"t{len(moto.call('efs', 'describe_file_systems')['FileSystems'])}"
    made = moto.call("efs", "create_file_system", CreationToken=token, **values)
    return f"{made['FileSystemId']}.efs.{REGION}.amazonaws.com:/"


def fsx(moto: Moto, kind: str, gib: int, **configuration: Any) -> str:
    subnets = moto.call("ec2", "describe_subnets")["Subnets"]
    made = moto.call(
        "fsx",
        "create_file_system",
        FileSystemType=kind,
        StorageCapacity=gib,
        SubnetIds=[subnets[0]["SubnetId"]],
        **configuration,
    )
    return f"{made['FileSystem']['FileSystemId']}.fsx.{REGION}.amazonaws.com:/a"


def detect_mounted(cloud: Cloud, directory: Path, *sources: str) -> tuple[Any, dict[str, Any]]:
    """Return what is found where these file systems are mounted, and their entries."""
    (directory / "1").mkdir(parents=True, exist_ok=True)
    lines = (
        f"{number} 1 0:{number} / /mnt/{number} rw - nfs4 {source} rw\n"
        for number, source in enumerate(sources)
    )
    (directory / "1" / "mountinfo").write_text("".join(lines))
    lenient = f"--endpoint=efs=http://127.0.0.1:{LENIENT_PORT}"
    fsx = f"--endpoint=fsx={ENDPOINT}"
    ended = cloud.detect(f"--path.procfs={directory}", lenient, fsx)
    entries = {
        each["match"]["mountpoint"]: {key: each[key] for key in each if key != "match"}
        for each in ended.file["disks"]
        if "mountpoint" in each["match"]
    }
    return ended, entries


def test_file_systems_are_found(cloud: Cloud, lenient: Moto, tmp_path: Path) -> None:
    lustre = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250}
    openzfs = {"DeploymentType": "SINGLE_AZ_1", "ThroughputCapacity": 128}
    provisioned = {"ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 12.5}
    sources = (
        efs(lenient),
        efs(lenient, ThroughputMode="elastic"),
        efs(lenient, **provisioned),
        fsx(cloud.moto, "LUSTRE", 1200, LustreConfiguration=lustre),
        fsx(cloud.moto, "OPENZFS", 64, OpenZFSConfiguration=openzfs),
        "nas.example.com:/export",
    )
    efs(lenient)  # that is not mounted
    permit(cloud.moto, "ec2:DescribeVolumes", "fsx:DescribeFileSystems")
    ended, entries = detect_mounted(cloud, tmp_path, *sources)
    assert ended.status == 0, ended.output
    assert entries == {
        "/mnt/0": {"api_type": "efs", "size": "1B", "options": {"mode": "bursting"}},
        "/mnt/1": {
            "api_type": "efs",
            "size": "1B",
            "options": {"mode": "elastic", "region": REGION},
        },
        "/mnt/2": {
            "api_type": "efs",
            "size": "1B",
            "bandwidth": "13107200B/s",
            "options": {"mode": "provisioned"},
        },
        "/mnt/3": {
            "api_type": "fsx-lustre",
            "size": "1200GiB",
            "options": {"deployment": "persistent-250"},
        },
        "/mnt/4": {"api_type": "fsx-openzfs", "size": "64GiB", "bandwidth": "128MB/s"},
    }
