"""The web configuration file: its schema, and what is read of it and of what it names."""

import contextlib
import os
import re
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.schema.reader import read_record
from disksla.base.schema.yaml_file import MAX_FILE_BYTES
from disksla.serve.http_server.config import (
    CIPHERS,
    CURVES,
    TLS13_CIPHERS,
    TlsServer,
    WebConfig,
    describe,
)
from disksla.serve.http_server.config_file import WebFile, read_web_file
from disksla.serve.http_server.tls import TlsContext
from support.schema_nodes import node

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


HASH = "$2b$10$" + "a" * 53
CERTIFICATE = {"cert_file": "server.crt", "key_file": "server.key"}
VERIFIED = {**CERTIFICATE, "client_auth_type": "RequireAndVerifyClientCert"}


def read(value: Any) -> WebConfig:
    config, problems = read_record(node(value), WebConfig)
    assert problems == ()
    assert config is not None
    return config


def read_tls(**keys: Any) -> TlsServer:
    return read({"tls_server_config": {**CERTIFICATE, **keys}}).tls


def problem_of(value: Any) -> str:
    config, problems = read_record(node(value), WebConfig)
    assert config is None
    (problem,) = problems
    return f"{problem.path}: {problem.text}"


def test_empty_file_enables_nothing() -> None:
    config = read({})
    assert not config.tls.is_enabled
    assert config.users == {}
    assert describe(config) == "no TLS, no passwords"


def test_tls_defaults_are_those_of_the_toolkit() -> None:
    tls = read_tls()
    assert tls.is_enabled
    assert (tls.min_version, tls.max_version) == ("TLS12", "TLS13")
    assert tls.client_auth is None
    assert tls.prefer_server_cipher_suites
    assert tls.old_ciphers == tuple(CIPHERS.values())


@pytest.mark.parametrize(
    ("suites", "old"),
    [
        ([], tuple(CIPHERS.values())),
        ([TLS13_CIPHERS[0]], ()),
        (
            ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
            ("ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256"),
        ),
    ],
)
def test_cipher_suites_keep_their_order(suites: list[str], old: tuple[str, ...]) -> None:
    assert read_tls(cipher_suites=suites).old_ciphers == old


@pytest.mark.parametrize("flag", ["y", "Yes", "ON", "true", "True"])
def test_flags_are_booleans_of_yaml(flag: str) -> None:
    assert read({"http_server_config": {"http2": flag}}).http.http2 is True
    assert not read_tls(prefer_server_cipher_suites="Off").prefer_server_cipher_suites
    assert "found 'yEs'; expected true" in problem_of({"http_server_config": {"http2": "yEs"}})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("1s", 1), ("1m30s", 90), ("1.5h", 5400), ("250ms", 0.25), ("5us", 5e-6)],
)
def test_interval_is_a_duration_of_go(text: str, seconds: float) -> None:
    assert read({"rate_limit": {"interval": text, "burst": "2"}}).rate_limit.interval_s == seconds


@pytest.mark.parametrize("text", ["", "s", "1", "1d", "1s ", " 1s", "-1s", "1.s5", "1s1"])
def test_interval_rejects_other_text(text: str) -> None:
    limit = {"interval": text, "burst": "2"}
    assert problem_of({"rate_limit": limit}).startswith(f"rate_limit.interval: found '{text}'")


def test_empty_headers_are_not_sent() -> None:
    headers = {"X-Frame-Options": "deny", "Content-Security-Policy": "", "X-XSS-Protection": None}
    assert read({"http_server_config": {"headers": headers}}).http.headers.lines == (
        ("X-Frame-Options", "deny"),
    )


def test_all_versions_of_bcrypt_are_accepted() -> None:
    users = {kind: HASH.replace("2b", kind) for kind in ("2a", "2b", "2x", "2y")}
    assert read({"basic_auth_users": users}).users == {
        name: hashed.encode() for name, hashed in users.items()
    }


@given(st.text(st.characters(exclude_characters="$"), min_size=1))
def test_problems_do_not_quote_passwords(text: str) -> None:
    password = f"xyzzy{text}xyzzy"
    for value in (
        {"basic_auth_users": {"alice": password}},
        {"basic_auth_users": password},
        {"basic_auth_users": {"alice": [password]}},
        {"tls_server_config": password},
        {"tls_server_config": {**CERTIFICATE, "key": [password]}},
        password,
    ):
        assert "xyzzy" not in problem_of(value)


def test_too_long_private_key_is_not_parsed() -> None:
    problem = problem_of({"tls_server_config": {**CERTIFICATE, "key": "k" * 300_000}})
    assert problem == (
        "tls_server_config.key: found 300000 characters;"
        " expected at most 262144, for a private key in PEM"
    )


@pytest.mark.parametrize(
    ("value", "summary"),
    [
        ({"tls_server_config": VERIFIED}, "TLS 1.2 to 1.3, client certificates required, no pass"),
        (
            {
                "tls_server_config": {**VERIFIED, "client_auth_type": "VerifyClientCertIfGiven"},
                "basic_auth_users": {"a": HASH, "b": HASH},
            },
            "TLS 1.2 to 1.3, client certificates verified if given, 2 users",
        ),
        (
            {"basic_auth_users": {"a": HASH}, "rate_limit": {"interval": "1s", "burst": "1"}},
            "no TLS, 1 user, rate limit",
        ),
    ],
)
def test_describe(value: Any, summary: str) -> None:
    assert describe(read(value)).startswith(summary)


data = st.recursive(
    st.none() | st.text(max_size=12) | st.sampled_from(["TLS12", "1s", HASH, "deny", "a.crt"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit"),
                    *("cert_file", "key_file", "client_auth_type", "min_version", "headers"),
                    *("interval", "burst", "X-Frame-Options", "curve_preferences", "alice"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(data)
def test_any_data_is_valid_or_has_problems(value: Any) -> None:
    config, problems = read_record(node(value), WebConfig)
    assert (config is None) == bool(problems)
    assert config is None or describe(config)
