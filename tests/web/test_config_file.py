"""The web configuration file: every good one is read, every bad one names its problems."""

import contextlib
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from disksla.schema.yaml_file import MAX_FILE_BYTES
from disksla.web.config import CURVES, WebConfig
from disksla.web.config_file import WebFile, read_web_file

FILES = Path(__file__).parent / "configurations"
DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "web.md"
SHOWN = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"

NEWER_THAN_PROMTOOL = {
    "good-client-allowed-sans": "client_allowed_sans",
    "good-file-before-text": "cert and key",
    "good-rate-limit": "rate_limit",
    "good-rate-limit-off": "rate_limit",
    "good-sections-left-empty": "rate_limit",
}
"""Good files that the promtool of Debian 12 (2.42) does not know a key of."""

STRICTER_THAN_PROMTOOL = {
    "invalid-authority-is-none": "would keep everybody out",
    "invalid-cipher-for-no-version": "would keep everybody out",
    "invalid-cipher-insecure": "Go has given them up since",
    "invalid-client-auth-any": "Python cannot ask for a certificate without verifying it",
    "invalid-client-auth-any-by-its-old-name": "the same",
    "invalid-curves-several": "Python can choose one curve, not several",
    "invalid-header-of-two-lines": "would be two headers",
    "invalid-only-a-version": "would be served in clear",
    "invalid-version-order": "would keep everybody out",
}
"""Bad files that promtool takes, and why they are bad here."""


@pytest.fixture
def directory(papers: Path, tmp_path: Path) -> Path:
    """Give a copy of the certificates that a test may change."""
    return Path(shutil.copytree(papers, tmp_path / "web"))


def written(directory: Path, text: str) -> Path:
    path = directory / "web.yml"
    path.write_text(text)
    return path


def read_good(path: Path) -> WebFile:
    file = read_web_file(path)
    assert file.problem is None
    assert file.config is not None
    return file


def expected_in(source: Path, path: Path) -> Iterator[str]:
    """Give the comments that open a file."""
    for line in source.read_text().splitlines():
        if not line.startswith("# "):
            break
        yield f"{path}:{line.removeprefix('# ')}"


@pytest.mark.parametrize("source", sorted(FILES.glob("invalid-*.yml")), ids=lambda path: path.stem)
def test_an_invalid_file_names_its_problems(source: Path, directory: Path) -> None:
    path = Path(shutil.copy(source, directory))
    expected = list(expected_in(source, path))
    assert expected
    file = read_web_file(path)
    assert file.problem is not None
    assert file.problem.splitlines() == expected
    assert file.context is None


@pytest.mark.parametrize("curve", CURVES)
def test_a_curve_is_all_that_is_spoken_or_refused_by_its_name(curve: str, directory: Path) -> None:
    path = directory / "web.yml"
    path.write_text(SHOWN.replace("}", f", curve_preferences: [{curve}]}}"))
    problem = read_web_file(path).problem
    if curve == "X25519" and problem is not None:
        assert "this Python cannot be held to X25519" in problem
    else:
        assert problem is None


@pytest.mark.parametrize("source", sorted(FILES.glob("good-*.yml")), ids=lambda path: path.stem)
def test_a_good_file_is_read(source: Path, directory: Path) -> None:
    file = read_good(Path(shutil.copy(source, directory)))
    assert isinstance(file.config, WebConfig)
    assert (file.context is not None) == file.config.tls.is_wanted


@pytest.mark.skipif(not shutil.which("promtool"), reason="NOT TESTED: promtool is not installed")
@pytest.mark.parametrize("source", sorted(FILES.glob("*.yml")), ids=lambda path: path.stem)
def test_promtool_says_the_same(source: Path, directory: Path) -> None:
    command = ["promtool", "check", "web-config", shutil.copy(source, directory)]
    said = subprocess.run(command, check=False, capture_output=True, text=True)
    takes = said.returncode == 0
    if source.stem in NEWER_THAN_PROMTOOL:
        if not takes:  # a newer one may
            assert "not found in type web." in said.stdout + said.stderr
    elif source.stem in STRICTER_THAN_PROMTOOL:
        assert takes or "cipher" in source.stem
    else:
        assert takes == source.stem.startswith("good-"), said.stdout + said.stderr


def test_what_differs_from_promtool_is_in_the_corpus() -> None:
    stems = {path.stem for path in FILES.glob("*.yml")}
    assert {*NEWER_THAN_PROMTOOL, *STRICTER_THAN_PROMTOOL} <= stems


def test_paths_are_relative_to_the_file(
    directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with contextlib.chdir(tmp_path_factory.mktemp("elsewhere")):
        read_good(written(directory, SHOWN))
    absolute = SHOWN.replace("server.crt", f"{directory}/server.crt")
    read_good(written(directory, absolute))


def test_certificate_and_key_may_stand_in_the_file(directory: Path) -> None:
    def indented(name: str) -> str:
        return (directory / name).read_text().replace("\n", "\n    ")

    text = "tls_server_config:\n"
    for key, name in (
        ("cert", "server.crt"),
        ("key", "server.key"),
        ("client_ca", "authority.crt"),
    ):
        text += f"  {key}: |\n    {indented(name)}\n"
    file = read_good(written(directory, text + "  client_auth_type: RequireAndVerifyClientCert\n"))
    assert file.context is not None
    assert file.context.verify_mode == ssl.CERT_REQUIRED
    assert len(file.context.get_ca_certs()) == 1
    assert set(file.stamps) == {directory / "web.yml"}


def test_nothing_of_a_key_is_left_on_the_disk_or_open(directory: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    read_good(written(directory, SHOWN))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_no_file(tmp_path: Path) -> None:
    path = tmp_path / "none.yml"
    file = read_web_file(path)
    assert file.config is None
    assert file.problem == (
        f"{path}: cannot be read: No such file or directory; expected a web configuration file"
    )
    assert file.is_as_it_was()
    path.touch()
    assert not file.is_as_it_was()


def test_a_huge_file(tmp_path: Path) -> None:
    path = tmp_path / "huge.yml"
    path.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    assert "larger than 1 MiB; expected a web configuration file" in str(
        read_web_file(path).problem
    )


@pytest.mark.parametrize(
    ("named", "what"),
    [("pipe", "is not a regular file"), (".", "is not a regular file")],
)
def test_what_is_no_file_is_not_waited_for(named: str, what: str, directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    file = read_web_file(written(directory, SHOWN.replace("server.crt", named)))
    assert f"cert_file: '{named}' {what}; expected a path" in str(file.problem)
    assert what in str(read_web_file(directory / named).problem)


def test_a_key_in_place_of_its_path_is_not_quoted(directory: Path) -> None:
    key = (directory / "server.key").read_text().replace("\n", "\n    ")
    text = f"tls_server_config:\n  cert_file: server.crt\n  key_file: |\n    {key}\n"
    problem = read_web_file(written(directory, text)).problem
    assert problem == (
        f"{directory}/web.yml:3: tls_server_config.key_file: found PEM; expected a path of a file,"
        " relative to this one (PEM goes to cert, key or client_ca)"
    )


def test_a_path_that_cannot_be_one(directory: Path) -> None:
    file = read_web_file(written(directory, SHOWN.replace("server.crt", '"a\\0b"')))
    assert "cert_file: " in str(file.problem)


def test_a_certificate_that_is_wrong_leaves_what_else_is_known(directory: Path) -> None:
    path = written(directory, SHOWN.replace("server.key", "client.key"))
    file = read_web_file(path)
    assert file.problem is not None
    assert file.config is not None
    assert file.config.tls.is_wanted
    assert {each.name for each in file.stamps} == {"web.yml", "server.crt", "client.key"}


@pytest.mark.parametrize("name", ["web.yml", "server.crt", "server.key", "authority.crt"])
@pytest.mark.parametrize("how", ["written", "replaced", "removed", "as-before"])
def test_a_change_of_any_file_is_seen(name: str, how: str, directory: Path) -> None:
    path = written(directory, (FILES / "good-client-required.yml").read_text())
    file = settled(path)
    changed = directory / name
    content = changed.read_bytes()
    match how:
        case "written":
            changed.write_bytes(content[:-1] + b" ")
        case "replaced":
            shutil.copy(changed, directory / "new")
            (directory / "new").replace(changed)
        case "removed":
            changed.unlink()
        case "as-before":  # the same content, length and time of change
            stat = changed.stat()
            changed.write_bytes(content)
            os.utime(changed, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert not file.is_as_it_was()


def settled(path: Path) -> WebFile:
    """Read until the file is so old that reading again would find nothing else."""
    while not (file := read_good(path)).is_as_it_was():
        pass
    return file


def test_a_file_that_was_just_written_is_read_again(directory: Path) -> None:
    file = read_good(written(directory, SHOWN))
    assert file.is_young
    assert not file.is_as_it_was()
    assert settled(directory / "web.yml").is_as_it_was()


def test_every_example_of_the_reference_is_good(directory: Path) -> None:
    examples = re.findall(
        r"^```yaml\n# web\.yml\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(examples) > 2
    for text in examples:
        read_good(written(directory, text))
