"""Which file storages the mount table shows, and what lies beside it tells of a proxy."""

import json
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.operating_system.machine import Roots
from disksla.kernel.nfs.identify import (
    Clues,
    EfsState,
    FileStorage,
    mounted_storages,
    parse_efs_state,
    parse_fstab,
    parse_implementations,
    parse_stunnel_names,
)
from disksla.kernel.nfs.nfs_files import read_file_storages
from disksla.kernel.procfs import Mount, parse_mountinfo

EFS_ID = "fs-0123456789abcdef0"
NO_CLUES = Clues()
OPTIONS = "rw,vers=4.1,proto=tcp,port=20449,timeo=600,addr=127.0.0.1"
MOUNTSTATS = """\
device /dev/sda1 mounted on / with fstype ext4
device 10.1.2.3:/vol mounted on /mnt/a with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.1
\timpl_id:\tname='NetApp Release 9.9.1P3',domain='netapp.com',date='1616445222,0'
\tbytes:\t0 0 0 0 0 0 0 0
device 10.1.2.4:/vol mounted on /mnt/b with fstype nfs statvers=1.1
\topts:\trw,vers=3
device 10.1.2.5:/vol mounted on /mnt/c with fstype nfs4 statvers=1.1
\timpl_id:\tname='',domain='',date='0,0'
"""


def mount(source: str, file_system: str = "nfs4", options: str = "rw") -> Mount:
    return Mount(0, 45, "/", "/mnt/a", source, file_system, options=options)


def only(mounted: Mount, clues: Clues = NO_CLUES) -> FileStorage:
    [storage] = mounted_storages([mounted], clues)
    assert (storage.mount_point, storage.source) == ("/mnt/a", mounted.source)
    return storage


@pytest.mark.parametrize(
    ("source", "file_system", "words"),
    [
        (f"{EFS_ID}.efs.eu-west-1.amazonaws.com:/", "nfs4", f"EFS {EFS_ID} in eu-west-1"),
        (
            f"eu-west-1a.{EFS_ID}.efs.eu-west-1.amazonaws.com:/a/b",
            "nfs4",
            f"EFS {EFS_ID} in eu-west-1",
        ),
        ("fs-01ab.efs.cn-north-1.amazonaws.com.cn:/", "nfs4", "EFS fs-01ab in cn-north-1"),
        ("fs-01ab.fsx.us-east-1.amazonaws.com:/fsx/vol", "nfs", "FSx fs-01ab in us-east-1"),
        ("fs-01ab.fsx.us-east-1.amazonaws.com@tcp:/x", "lustre", "FSx fs-01ab in us-east-1"),
        (
            "svm-0a.fs-01ab.fsx.us-east-1.amazonaws.com:/vol1",
            "nfs",
            "FSx for ONTAP fs-01ab in us-east-1",
        ),
        ("acct1.file.core.windows.net:/acct1/share", "nfs4", "Azure Files acct1/share"),
        ("//acct1.file.core.windows.net/my-share/sub", "cifs", "Azure Files acct1/my-share"),
        (
            "acct1.privatelink.file.core.windows.net:/acct1/share",
            "nfs4",
            "Azure Files acct1/share",
        ),
        ("//acct1.z10.file.storage.azure.net/share", "smb3", "Azure Files acct1/share"),
        (
            "0a1b-x.eu-central-1.extreme.nas.aliyuncs.com:/share",
            "nfs",
            "NAS Extreme 0a1b-x in eu-central-1",
        ),
        ("0a1b-x.eu-central-1.nas.aliyuncs.com:/", "nfs", "NAS 0a1b-x in eu-central-1"),
        (
            "c0ffee00-1111-2222-3333-444455556666.sfsturbo.internal:/",
            "nfs",
            "SFS Turbo c0ffee00-1111-2222-3333-444455556666",
        ),
        (
            "sfs-nas1.eu-west-101.myhuaweicloud.com:/share-1",
            "nfs",
            "SFS sfs-nas1.eu-west-101.myhuaweicloud.com:/share-1 in eu-west-101",
        ),
        ("10.0.0.2:/vol1", "nfs", "nfs 10.0.0.2:/vol1"),
        ("[fd00::2]:/vol1", "nfs4", "nfs4 [fd00::2]:/vol1"),
        ("nas.example.com:/export/db", "nfs4", "nfs4 nas.example.com:/export/db"),
        ("//nas/share", "cifs", "cifs //nas/share"),
    ],
)
def test_server_tells_the_provider(source: str, file_system: str, words: str) -> None:
    assert only(mount(source, file_system)).describe() == words


@pytest.mark.parametrize(
    "source",
    [
        "fs-xyz.efs.eu-west-1.amazonaws.com:/",
        "efs.eu-west-1.amazonaws.com:/",
        "file.core.windows.net:/a/b",
        "fs-01ab:/",
        "",
        ":/",
        "//",
    ],
)
def test_other_servers_are_no_providers(source: str) -> None:
    storage = only(mount(source), Clues(provider="aws"))
    assert (storage.provider, storage.id) == (None, None)


def test_share_of_azure_without_a_name_has_no_id() -> None:
    storage = only(mount("acct1.file.core.windows.net:/"))
    assert (storage.provider, storage.id) == ("azure", None)


def test_disks_and_programs_are_no_file_storages() -> None:
    others = ("ext4", "xfs", "tmpfs", "fuse.sshfs", "overlay", "nfsd", "proc")
    assert mounted_storages([mount("10.0.0.1:/a", each) for each in others], Clues()) == ()


def test_last_mount_at_a_point_counts() -> None:
    disk = mount("/dev/vdb", "ext4")
    assert mounted_storages([mount("10.0.0.1:/a"), disk], Clues()) == ()
    assert len(mounted_storages([disk, mount("10.0.0.1:/a")], Clues())) == 1


@pytest.mark.parametrize("point", ["/a\nb", "/a\udce9", "/\x1b[2J"])
def test_odd_mount_point_costs_itself_only(point: str) -> None:
    good = mount("10.0.0.1:/a")
    assert [
        each.mount_point
        for each in mounted_storages([good._replace(mount_point=point), good], Clues())
    ] == ["/mnt/a"]


@pytest.mark.parametrize(
    ("provider", "words"),
    [
        ("yandex", "file storage fhm0a"),
        ("scaleway", "file storage fhm0a"),
        ("aws", "virtiofs fhm0a"),
        (None, "virtiofs fhm0a"),
    ],
)
def test_tag_of_virtiofs_is_the_id_at_some_providers(provider: str | None, words: str) -> None:
    assert only(mount("fhm0a", "virtiofs"), Clues(provider)).describe() == words


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.1.1", "localhost", "[::1]"])
def test_efs_behind_a_proxy_is_found_by_its_port(host: str) -> None:
    state = EfsState(EFS_ID, "eu-west-1", by_efs_proxy=True)
    storage = only(mount(f"{host}:/data", options=OPTIONS), Clues(efs_by_port={20449: state}))
    assert storage.describe() == f"EFS {EFS_ID} in eu-west-1"
    assert storage.by_efs_proxy
    other = only(mount("127.0.0.1:/", options=OPTIONS), Clues(efs_by_port={20450: state}))
    assert other.service is None
    # The port of the callback is no port.
    no_port = mount("127.0.0.1:/", options="rw,clientport=20449,addr=127.0.0.1")
    assert only(no_port, Clues(efs_by_port={20449: state})).service is None


def test_efs_behind_a_proxy_is_found_by_fstab() -> None:
    clues = Clues(efs_by_mount_point={"/mnt/a": EfsState(EFS_ID)})
    assert only(mount("127.0.0.1:/", options=OPTIONS), clues).id == EFS_ID
    # What is mounted from elsewhere is what the mount table says.
    assert only(mount("10.0.0.2:/vol1"), clues).id is None


def test_azure_behind_a_proxy_is_found_by_the_account_in_its_path() -> None:
    clues = Clues(azure_accounts=frozenset({"acct1"}))
    assert only(mount("127.0.0.1:/acct1/share"), clues).describe() == "Azure Files acct1/share"
    assert only(mount("127.0.0.1:/acct2/share"), clues).service is None
    assert only(mount("127.0.0.1:/acct1"), clues).service is None


@pytest.mark.parametrize(
    ("provider", "service"),
    [
        ("aws", "FSx for ONTAP"),
        ("azure", "NetApp Files"),
        ("gcp", "NetApp Volumes"),
        ("vk", None),
        (None, None),
    ],
)
def test_server_that_states_its_name(provider: str | None, service: str | None) -> None:
    clues = Clues(provider, implementations=parse_implementations(MOUNTSTATS))
    storage = only(mount("10.1.2.3:/vol"), clues)
    assert (storage.service, storage.id) == (service, None)


def test_implementations() -> None:
    assert parse_implementations(MOUNTSTATS) == {"/mnt/a": "NetApp Release 9.9.1P3", "/mnt/c": ""}
    escaped = parse_implementations(MOUNTSTATS.replace("/mnt/a", r"/mnt/my\040data"))
    assert escaped["/mnt/my data"] == "NetApp Release 9.9.1P3"


def test_state_file_of_efs() -> None:
    name = f"{EFS_ID}.mnt.efs.20449"
    content = {
        "pid": 1234,
        "cmd": ["/usr/bin/efs-proxy", f"/var/run/efs/stunnel-config.{name}", "--tls"],
        "files": [],
        "mount_time": 1790000000.5,
        "mountpoint": "/mnt/efs",
        "region": "eu-west-1",
        "fsId": EFS_ID,
    }

    def parsed(**values: object) -> object:
        return parse_efs_state(name, json.dumps(content | values).encode())

    assert parsed() == {20449: EfsState(EFS_ID, "eu-west-1", by_efs_proxy=True)}
    assert parsed(cmd=["/usr/bin/stunnel"]) == {20449: EfsState(EFS_ID, "eu-west-1")}
    assert parsed(service_type="s3files") == {}
    assert parsed(service_type="efs", cmd=5, region="x/../y") == {20449: EfsState(EFS_ID)}
    for odd in (b"", b"[]", b"{", b"\xff", b"[" * 100000, b'{"cmd": [[]]}'):
        assert parse_efs_state(name, odd) == {20449: EfsState(EFS_ID)}


@pytest.mark.parametrize(
    "name",
    [
        f"~{EFS_ID}.mnt.efs.20449",
        f"{EFS_ID}.mnt.efs.20449+",
        f"stunnel-config.{EFS_ID}.mnt.efs.20449",
        f"{EFS_ID}.mnt.efs",
        "fs-xyz.mnt.1",
        f"{EFS_ID}.mnt.123456",
    ],
)
def test_other_files_beside_it(name: str) -> None:
    assert parse_efs_state(name, b"{}") == {}


def test_fstab() -> None:
    text = f"""\
# comment
UUID=0a /  ext4 defaults 0 1
{EFS_ID}:/ /mnt/a efs _netdev,tls 0 0
fs-01ab /mnt/b/ efs defaults
eu-west-1a.fs-02.efs.eu-west-1.amazonaws.com:/x /mnt/c efs tls
fs-03.efs.eu-west-1.amazonaws.com:/ /mnt/d nfs4 rw
/dev/vdb /mnt/e efs
fs-04
"""
    assert parse_fstab(text) == {
        "/mnt/a": EfsState(EFS_ID),
        "/mnt/b": EfsState("fs-01ab"),
        "/mnt/c": EfsState("fs-02", "eu-west-1"),
    }


def test_names_of_stunnel_files() -> None:
    names = ["stunnel_acct1.conf", "logs", "stunnel_.conf", "stunnel_A.conf", "stunnel_b2c.conf~"]
    assert parse_stunnel_names(names) == {"acct1"}


@given(st.text(string.printable), st.text(string.printable), st.binary())
def test_odd_text_is_no_error(source: str, text: str, content: bytes) -> None:
    for file_system in ("nfs4", "cifs", "lustre", "virtiofs"):
        only(mount(source, file_system, options=text), Clues("yandex"))
    parse_efs_state(f"{EFS_ID}.{text}.1", content)
    parse_fstab(text)
    parse_implementations(text)


def host(root: Path, lines: str) -> Roots:
    for directory in ("proc/1", "run/efs", "etc/stunnel/microsoft/aznfs/nfsv4_fileShare"):
        (root / directory).mkdir(parents=True)
    (root / "proc/1/mountinfo").write_text(lines)
    return Roots(procfs=root / "proc", rootfs=root)


EFS_LINE = f"36 28 0:45 / /mnt/efs rw shared:1 - nfs4 127.0.0.1:/ {OPTIONS}\n"


def test_files_beside_the_mount_table(tmp_path: Path) -> None:
    roots = host(
        tmp_path,
        EFS_LINE
        + "37 28 0:46 / /mnt/azure rw - nfs4 127.0.0.1:/acct1/share rw,port=20500\n"
        + "38 28 0:47 / /mnt/a rw - nfs4 10.1.2.3:/vol rw\n"
        + "39 28 0:48 / /mnt/old rw - nfs4 127.0.0.1:/ rw,port=20501\n"
        + "40 28 253:1 / / rw - ext4 /dev/vda1 rw\n",
    )
    (tmp_path / "proc/1/mountstats").write_text(MOUNTSTATS)
    (tmp_path / "run/efs" / f"{EFS_ID}.mnt.efs.20449").write_text('{"region": "eu-west-1"}')
    (tmp_path / "run/efs" / f"{EFS_ID}.mnt.efs.20449+").mkdir()
    (tmp_path / "run/efs/fs-0bad.x.1").mkdir()
    (tmp_path / "etc/fstab").write_text("fs-02:/ /mnt/old efs tls 0 0\n")
    (tmp_path / "etc/stunnel/microsoft/aznfs/nfsv4_fileShare/stunnel_acct1.conf").touch()
    storages, problems = read_file_storages(roots, "azure")
    assert [each.describe() for each in storages] == [
        f"EFS {EFS_ID} in eu-west-1",
        "Azure Files acct1/share",
        "NetApp Files 10.1.2.3:/vol",
        "EFS fs-02",
    ]
    assert problems == ()


def test_file_that_cannot_be_read_is_named_where_it_was_needed(tmp_path: Path) -> None:
    roots = host(tmp_path, EFS_LINE)
    (tmp_path / "run/efs").rmdir()
    (tmp_path / "run/efs").write_text("no directory")
    [storage], [problem] = read_file_storages(roots, "aws")
    assert storage.service is None
    assert problem == (
        f"the file storage at /mnt/efs is not known: cannot read {tmp_path}/run/efs:"
        " Not a directory; permit to read it"
    )
    (tmp_path / "etc/fstab").write_text(f"{EFS_ID}:/ /mnt/efs efs tls 0 0\n")
    [storage], problems = read_file_storages(roots, "aws")
    assert (storage.id, problems) == (EFS_ID, ())


def test_state_file_that_cannot_be_read_counts_by_its_name(tmp_path: Path) -> None:
    roots = host(tmp_path, EFS_LINE)
    (tmp_path / "run/efs" / f"{EFS_ID}.mnt.efs.20449").symlink_to("/dev/zero")
    [storage], problems = read_file_storages(roots, "aws")
    assert (storage.describe(), problems) == (f"EFS {EFS_ID}", ())


def test_nothing_is_read_for_disks_alone(tmp_path: Path) -> None:
    roots = host(tmp_path, "40 28 253:1 / / rw - ext4 /dev/vda1 rw\n")
    (tmp_path / "run/efs/fs-01.x.1").symlink_to("/dev/zero")
    assert read_file_storages(roots, None) == ((), ())
    (tmp_path / "proc/1/mountinfo").unlink()
    with pytest.raises(FileNotFoundError):
        read_file_storages(roots, None)


def test_mount_table_of_this_format() -> None:
    [found] = parse_mountinfo(EFS_LINE)
    assert (found.options, found.file_system) == (OPTIONS, "nfs4")
