"""Reading the web configuration file: valid ones are read, invalid ones name all problems."""

import contextlib
import os
import re
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from disksla.base.schema.yaml_file import MAX_FILE_BYTES
from disksla.serve.http_server.config import CURVES, WebConfig
from disksla.serve.http_server.config_file import WebFile, read_web_file
from disksla.serve.http_server.tls import TlsContext

FILES = Path(__file__).parent / "configurations"

DOCUMENT = Path(__file__).parents[3] / "docs" / "web.md"

TLS = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"


@pytest.fixture
def directory(certificates: Path, tmp_path: Path) -> Path:
    """Return a copy of the certificates, for changes by a test."""
    return Path(shutil.copytree(certificates, tmp_path / "web"))


def write(directory: Path, text: str) -> Path:
    path = directory / "web.yml"
    path.write_text(text)
    return path


def read_valid(path: Path) -> WebFile:
    file = read_web_file(path)
    assert file.problem is None
    assert file.config is not None
    return file


def expected_problems(source: Path, path: Path) -> Iterator[str]:
    """Yield the comments at the top of a file, as problems of `path`."""
    for line in source.read_text().splitlines():
        if not line.startswith("# "):
            break
        yield f"{path}:{line.removeprefix('# ')}"


@pytest.mark.parametrize("source", sorted(FILES.glob("invalid-*.yml")), ids=lambda path: path.stem)
def test_invalid_file_names_its_problems(source: Path, directory: Path) -> None:
    path = Path(shutil.copy(source, directory))
    expected = list(expected_problems(source, path))
    assert expected
    file = read_web_file(path)
    assert file.problem is not None
    assert file.problem.splitlines() == expected
    assert file.context is None


@pytest.mark.parametrize("curve", CURVES)
def test_curve_is_set_or_rejected_by_name(curve: str, directory: Path) -> None:
    path = directory / "web.yml"
    path.write_text(TLS.replace("}", f", curve_preferences: [{curve}]}}"))
    problem = read_web_file(path).problem
    if curve == "X25519" and problem is not None:
        assert "this Python cannot restrict TLS to X25519" in problem
    else:
        assert problem is None


@pytest.mark.parametrize("source", sorted(FILES.glob("good-*.yml")), ids=lambda path: path.stem)
def test_valid_file_is_read(source: Path, directory: Path) -> None:
    file = read_valid(Path(shutil.copy(source, directory)))
    assert isinstance(file.config, WebConfig)
    assert (file.context is not None) == file.config.tls.is_enabled


def test_paths_are_relative_to_the_file(
    directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with contextlib.chdir(tmp_path_factory.mktemp("elsewhere")):
        read_valid(write(directory, TLS))
    absolute = TLS.replace("server.crt", f"{directory}/server.crt")
    read_valid(write(directory, absolute))


def test_certificate_and_key_can_be_inline(directory: Path) -> None:
    def indent(name: str) -> str:
        return (directory / name).read_text().replace("\n", "\n    ")

    text = "tls_server_config:\n"
    for key, name in (
        ("cert", "server.crt"),
        ("key", "server.key"),
        ("client_ca", "authority.crt"),
    ):
        text += f"  {key}: |\n    {indent(name)}\n"
    file = read_valid(write(directory, text + "  client_auth_type: RequireAndVerifyClientCert\n"))
    assert isinstance(file.context, TlsContext)
    assert file.context.verify_mode == ssl.CERT_REQUIRED
    assert len(file.context.get_ca_certs()) == 1
    assert set(file.stamps) == {directory / "web.yml"}


def test_reading_leaves_no_file_open(directory: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    read_valid(write(directory, TLS))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_missing_file_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "none.yml"
    file = read_web_file(path)
    assert file.config is None
    assert file.problem == (
        f"{path}: cannot be read: No such file or directory; expected a web configuration file"
    )
    assert file.is_unchanged()
    path.touch()
    assert not file.is_unchanged()


def test_too_large_file_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "huge.yml"
    path.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    assert "larger than 1 MiB; expected a web configuration file" in str(
        read_web_file(path).problem
    )


@pytest.mark.parametrize(
    ("name", "problem"), [("pipe", "is not a regular file"), (".", "is not a regular file")]
)
def test_other_than_regular_files_are_rejected(name: str, problem: str, directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    file = read_web_file(write(directory, TLS.replace("server.crt", name)))
    assert f"cert_file: '{name}' {problem}; expected a path" in str(file.problem)
    assert problem in str(read_web_file(directory / name).problem)


def test_key_in_place_of_its_path_is_not_quoted(directory: Path) -> None:
    key = (directory / "server.key").read_text().replace("\n", "\n    ")
    text = f"tls_server_config:\n  cert_file: server.crt\n  key_file: |\n    {key}\n"
    problem = read_web_file(write(directory, text)).problem
    assert problem == (
        f"{directory}/web.yml:3: tls_server_config.key_file: found PEM; expected a path of a file,"
        " relative to this one (PEM belongs in cert, key or client_ca)"
    )


def test_path_with_nul_is_a_problem(directory: Path) -> None:
    file = read_web_file(write(directory, TLS.replace("server.crt", '"a\\0b"')))
    assert "cert_file: " in str(file.problem)


def test_invalid_certificate_keeps_the_other_settings(directory: Path) -> None:
    path = write(directory, TLS.replace("server.key", "client.key"))
    file = read_web_file(path)
    assert file.problem is not None
    assert file.config is not None
    assert file.config.tls.is_enabled
    assert {each.name for each in file.stamps} == {"web.yml", "server.crt", "client.key"}


@pytest.mark.parametrize("name", ["web.yml", "server.crt", "server.key", "authority.crt"])
@pytest.mark.parametrize("how", ["written", "replaced", "removed", "rewritten"])
def test_change_of_any_file_is_noticed(name: str, how: str, directory: Path) -> None:
    path = write(directory, (FILES / "good-client-required.yml").read_text())
    file = read_when_settled(path)
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
        case "rewritten":  # same content, size and mtime
            stat = changed.stat()
            changed.write_bytes(content)
            os.utime(changed, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert not file.is_unchanged()


def read_when_settled(path: Path) -> WebFile:
    """Read until the last change is old enough to differ from a later one in its time."""
    while not (file := read_valid(path)).is_unchanged():
        pass
    return file


def test_recently_written_file_is_read_again(directory: Path) -> None:
    file = read_valid(write(directory, TLS))
    assert file.is_recent
    assert not file.is_unchanged()
    assert read_when_settled(directory / "web.yml").is_unchanged()


def test_examples_of_the_documentation_are_valid(directory: Path) -> None:
    examples = re.findall(
        r"^```yaml\n# web\.yml\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(examples) > 2
    for text in examples:
        read_valid(write(directory, text))
