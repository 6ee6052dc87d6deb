"""`disksla detect` against real Keystone and Cinder, the servers of OpenStack and VK Cloud.

They run on SQLite, without a message queue and without storage: volumes are in the database only.
The metadata service is the test's own, made from Nova's documents.
"""

import contextlib
import json
import random
import sqlite3
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clouds.namespace import Ended, Namespace, clean_environment
from clouds.server import Received, Reply, serving
from disksla.base.units import GIB
from disksla.promise.catalogue import derive_limits
from disksla.promise.catalogue.catalog import load_catalog
from support.waiting import eventually

pytestmark = pytest.mark.alone  # one pair of servers for all tests

KEYSTONE_PORT, CINDER_PORT = 5001, 8776
KEYSTONE = f"http://127.0.0.1:{KEYSTONE_PORT}/v3"
CINDER = f"http://127.0.0.1:{CINDER_PORT}/v3"
SERVER = "d8e02d56-2648-49a3-bf97-6be8f1204f38"
PASSWORD = "administrator's"
PAGE = 3
SEED = 20261123
TYPES = ("ceph-ssd", "high-iops", "ef-nvme")
START_S = 120

KEYSTONE_CONF = """\
[DEFAULT]
log_file = {directory}/keystone.log
[database]
connection = sqlite:///{directory}/keystone.db
[fernet_tokens]
key_repository = {directory}/fernet
[credential]
key_repository = {directory}/credential
"""
CINDER_CONF = """\
[DEFAULT]
log_file = {directory}/cinder.log
state_path = {directory}
api_paste_config = {etc}/cinder/api-paste.ini
resource_query_filters_file = {etc}/cinder/resource_filters.json
auth_strategy = keystone
transport_url = fake:/
osapi_max_limit = {page}
quota_volumes = -1
quota_gigabytes = -1
[database]
connection = sqlite:///{directory}/cinder.db
[oslo_concurrency]
lock_path = {directory}
[keystone_authtoken]
auth_url = {keystone}
www_authenticate_uri = {keystone}
auth_type = password
username = admin
password = {password}
project_name = admin
user_domain_id = default
project_domain_id = default
"""


class Openstack:
    """Keystone and Cinder, and calls to them as the administrator."""

    def __init__(self, namespace: Namespace, directory: Path) -> None:
        self.namespace = namespace
        self.directory = directory
        self.token = ""
        self.project = ""

    def call(
        self, method: str, url: str, body: Any = None, token: str | None = None
    ) -> tuple[dict[str, str], Any]:
        """Return the headers and the content of an answer, which must be a success."""
        command = ["curl", "--silent", "--show-error", "--fail-with-body", "--dump-header", "-"]
        command += ["--request", method, "--header", "content-type: application/json"]
        command += ["--header", f"x-auth-token: {self.token if token is None else token}"]
        command += ["--header", "openstack-api-version: volume 3.44"]
        command += ["--data", json.dumps(body)] if body is not None else []
        run = subprocess.run(
            self.namespace.inside(*command, url), capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, f"{method} {url}: {run.stdout}{run.stderr}"
        head, _, content = (
            run.stdout.partition("\n\n")
            if "\r" not in run.stdout
            else (run.stdout.partition("\r\n\r\n"))
        )
        lines = (line.partition(":") for line in head.splitlines())
        headers = {name.lower(): value.strip() for name, _, value in lines}
        return headers, json.loads(content or "null")

    def authenticate(self, user: str, password: str, project: str) -> tuple[str, Any]:
        domain = {"id": "default"}
        named = {"name": user, "password": password, "domain": domain}
        scope = {"project": {"name": project, "domain": domain}}
        identity = {"methods": ["password"], "password": {"user": named}}
        body = {"auth": {"identity": identity, "scope": scope}}
        headers, answer = self.call("POST", f"{KEYSTONE}/auth/tokens", body, token="")
        return headers["x-subject-token"], answer["token"]

    def add_volume(self, kind: str, size: int, server: str | None) -> str:
        """Create a volume; attach it as Nova and a driver would, who are not here."""
        url = f"{CINDER}/{self.project}"
        _, made = self.call(
            "POST", f"{url}/volumes", {"volume": {"size": size, "volume_type": kind}}
        )
        volume: str = made["volume"]["id"]
        reset = {"os-reset_status": {"status": "available"}}
        self.call("POST", f"{url}/volumes/{volume}/action", reset)
        if server is not None:
            attachment = {"instance_uuid": server, "volume_uuid": volume}
            self.call("POST", f"{url}/attachments", {"attachment": attachment})
            with contextlib.closing(sqlite3.connect(self.directory / "cinder.db")) as database:
                for table, changes in (
                    ("volume_attachment WHERE volume_id", "attach_status = 'attached'"),
                    ("volumes WHERE id", "attach_status = 'attached', status = 'in-use'"),
                ):
                    name, _, condition = table.partition(" ")
                    statement = f"UPDATE {name} SET {changes} {condition} = ?"
                    database.execute(statement, (volume,))
                database.commit()
        return volume

    def detect(self, credentials: Path, *arguments: str | Path, **env: str) -> Ended:
        """Run `disksla detect` on the server."""
        with serving(self.namespace.listen(80), metadata):
            chosen = ("--provider", "vk", "--credentials", credentials, *arguments)
            return self.namespace.detect(*chosen, env=env)


def metadata(request: Received) -> Reply:
    """Answer as Nova's metadata service does."""
    if request.path != "/openstack/latest/meta_data.json":
        return Reply(404)
    return Reply(body=json.dumps({"uuid": SERVER, "name": "db-1", "devices": []}).encode())


@pytest.fixture(scope="module")
def openstack(
    namespace: Namespace, openstack_environment: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Openstack]:
    directory = tmp_path_factory.mktemp("openstack")
    programs = openstack_environment / "bin"
    keystone, cinder = directory / "keystone.conf", directory / "cinder.conf"
    keystone.write_text(KEYSTONE_CONF.format(directory=directory))
    cinder.write_text(
        CINDER_CONF.format(
            directory=directory,
            etc=openstack_environment / "etc",
            page=PAGE,
            keystone=KEYSTONE,
            password=PASSWORD,
        )
    )
    manage = (programs / "keystone-manage", "--config-file", keystone)
    owner = ("--keystone-user", "root", "--keystone-group", "root")
    for command in (
        (*manage, "db_sync"),
        (*manage, "fernet_setup", *owner),
        (*manage, "credential_setup", *owner),
        (
            *(*manage, "bootstrap", "--bootstrap-password", PASSWORD),
            *("--bootstrap-public-url", KEYSTONE, "--bootstrap-internal-url", KEYSTONE),
            *("--bootstrap-region-id", "RegionOne"),
        ),
        (programs / "cinder-manage", "--config-file", cinder, "db", "sync"),
    ):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr[-2000:]
    environment = clean_environment() | {"OS_KEYSTONE_CONFIG_FILES": str(keystone)}
    serve = (programs / "python", Path(__file__).with_name("wsgi_server.py"))
    with contextlib.ExitStack() as running:
        for arguments in (
            ("keystone.wsgi.api", str(KEYSTONE_PORT)),
            ("cinder.wsgi.api", str(CINDER_PORT), "--config-file", str(cinder)),
        ):
            process = running.enter_context(
                subprocess.Popen(
                    namespace.inside(*serve, *arguments),
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            running.callback(process.terminate)
        made = Openstack(namespace, directory)
        assert eventually(lambda: is_up(namespace, KEYSTONE) and is_up(namespace, CINDER), START_S)
        set_up(made)
        yield made


def is_up(namespace: Namespace, url: str) -> bool:
    command = namespace.inside("curl", "--silent", "--output", "/dev/null", f"{url}/")
    return subprocess.run(command, check=False).returncode == 0


def set_up(openstack: Openstack) -> None:
    """Register Cinder in the catalogue; create volume types, and a user who may only read."""
    openstack.token, token = openstack.authenticate("admin", PASSWORD, "admin")
    openstack.project = token["project"]["id"]
    _, service = openstack.call(
        "POST", f"{KEYSTONE}/services", {"service": {"type": "block-storage", "name": "cinder"}}
    )
    endpoint = {
        "interface": "public",
        "region_id": "RegionOne",
        "url": f"{CINDER}/$(project_id)s",
        "service_id": service["service"]["id"],
    }
    openstack.call("POST", f"{KEYSTONE}/endpoints", {"endpoint": endpoint})
    for kind in TYPES:
        openstack.call(
            "POST", f"{CINDER}/{openstack.project}/types", {"volume_type": {"name": kind}}
        )
    _, user = openstack.call(
        "POST", f"{KEYSTONE}/users", {"user": {"name": "reader", "password": "reads"}}
    )
    _, roles = openstack.call("GET", f"{KEYSTONE}/roles?name=reader")
    grant = f"projects/{openstack.project}/users/{user['user']['id']}/roles"
    openstack.call("PUT", f"{KEYSTONE}/{grant}/{roles['roles'][0]['id']}")


@pytest.fixture
def credentials(openstack: Openstack, tmp_path: Path) -> Path:
    """Return a clouds.yaml with a new application credential that has the role reader only."""
    token, content = openstack.authenticate("reader", "reads", "admin")
    url = f"{KEYSTONE}/users/{content['user']['id']}/application_credentials"
    wanted = {"name": uuid.uuid4().hex, "roles": [{"name": "reader"}]}
    _, made = openstack.call("POST", url, {"application_credential": wanted}, token)
    return write_clouds(tmp_path, made["application_credential"])


def write_clouds(directory: Path, credential: dict[str, Any]) -> Path:
    auth = {
        "auth_url": KEYSTONE,
        "application_credential_id": credential["id"],
        "application_credential_secret": credential["secret"],
    }
    content = {"clouds": {"mine": {"auth": auth, "region_name": "RegionOne"}}}
    file = directory / "clouds.yaml"
    file.write_text(json.dumps(content))  # JSON is YAML
    return file


def secret_of(clouds: Path) -> str:
    content = json.loads(clouds.read_text())["clouds"]["mine"]["auth"]
    secret: str = content["application_credential_secret"]
    return secret


def test_volumes_of_the_server_are_found(
    openstack: Openstack, credentials: Path, tmp_path: Path
) -> None:
    """Use an application credential with the role reader, over four pages of volumes."""
    random_ = random.Random(SEED)
    expected: dict[str, tuple[str, int]] = {}
    for number in range(4 * PAGE - 1):
        kind, size = random_.choice(TYPES), random_.randint(1, 2000)
        server = (SERVER, None, str(uuid.uuid4()))[number % 3]
        volume = openstack.add_volume(kind, size, server)
        if server == SERVER:
            expected[volume] = (kind, size)
    output = tmp_path / "cloud.json"
    ended = openstack.detect(credentials, "--output", output)
    assert ended.status == 0, ended.output
    assert {
        disk["match"]["volume"]: (disk["api_type"], disk["size"]) for disk in ended.file["disks"]
    } == {volume: (kind, f"{size}GiB") for volume, (kind, size) in expected.items()}
    assert secret_of(credentials) not in ended.output
    assert (ended.file["provider"], ended.file["origin"]) == ("vk", "VK Cloud API")
    catalog = load_catalog()
    for kind, size in expected.values():
        assert derive_limits(catalog[f"vk.{kind}"], size * GIB).rates.read_iops


def test_credential_of_systemd(openstack: Openstack, credentials: Path) -> None:
    with serving(openstack.namespace.listen(80), metadata):
        directory = {"CREDENTIALS_DIRECTORY": str(credentials.parent)}
        ended = openstack.namespace.detect("--provider", "vk", env=directory)
    assert ended.status == 0, ended.output


def test_wrong_secret(openstack: Openstack, credentials: Path, tmp_path: Path) -> None:
    good = openstack.detect(credentials, "--output", tmp_path / "cloud.json")
    wrong = credentials.read_text().replace(secret_of(credentials), "S3CRET")
    credentials.write_text(wrong)
    ended = openstack.detect(credentials, "--output", tmp_path / "cloud.json")
    assert ended.reasons == [("api", "denied")]
    assert "Keystone rejected the application credential" in ended.output
    assert "S3CRET" not in ended.output
    assert ended.file["disks"] == good.file["disks"]
    assert ended.file["as_of"] == good.file["as_of"]
