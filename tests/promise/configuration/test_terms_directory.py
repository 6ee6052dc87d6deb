"""Tests of reading terms files: changes, incomplete and invalid files, what is kept."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.promise.configuration.settings_file import TermsDirectory
from disksla.promise.configuration.terms_directory import (
    MOST_FILES,
    TermsDirectories,
    read_terms_files,
)

GP3 = "{provider: aws, disks: [{match: {device: vda}, api_type: gp3}]}"
GP2 = "{provider: aws, disks: [{match: {device: vda}, api_type: gp2}]}"


def written(path: Path, text: str) -> Path:
    """Write a file in place; its time of change differs from that of any file before."""
    path.write_text(text, encoding="utf-8")
    now_ns = time.time_ns()
    os.utime(path, ns=(now_ns, now_ns))
    return path


def reading(path: Path, *, follows_links: bool = True) -> TermsDirectories:
    """Return a directory whose files have been read."""
    directories = TermsDirectories([TermsDirectory(path, follows_links)])
    directories.read(at_once=True)
    return directories


def terms_of(directories: TermsDirectories) -> list[object]:
    """Return the terms of all entries."""
    return [entry.terms for file in directories.files() for _, entry in file.entries()]


def test_files_of_all_directories_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    written(tmp_path / "a" / "x.yml", GP3)
    written(tmp_path / "a" / "y.yaml", GP2)
    written(tmp_path / "b" / "z.json", '{"source": "api", "machine": {"type": "m5.large"}}')
    written(tmp_path / "a" / "README", "no terms file")
    written(tmp_path / "a" / ".hidden.yml", "no terms file")
    files, problems = read_terms_files([TermsDirectory(tmp_path / name) for name in "abc"])
    assert problems == ()
    assert [Path(file.name).name for file in files] == ["x.yml", "y.yaml", "z.json"]
    assert [file.source for file in files] == ["file", "file", "api"]


def test_lines_of_a_file_of_passwords_are_not_quoted(tmp_path: Path) -> None:
    """A link may lead anywhere; its lines may be keys of a mapping."""
    shadow = "root:$y$j9T$abc$def:19000:0:99999:7:::\nme:$6$xyz$uvw:19000:0:99999:7:::\n"
    written(tmp_path / "shadow", shadow)
    (tmp_path / "x.yml").symlink_to(tmp_path / "shadow")
    [problem] = reading(tmp_path).problems
    assert not {"$y", "$6", "abc", "xyz", "root"} & set(problem.replace("$", " $").split())
    assert "$" not in problem


def test_a_directory_has_a_limit_of_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is of all files together, also of small ones with aliases."""
    monkeypatch.setattr("disksla.promise.configuration.terms_directory.MOST_ENTRIES", 20)
    aliases = "{provider: aws, disks: [&a {match: {device: vda}, api_type: gp3}%s]}"
    for name in "cab":
        written(tmp_path / f"{name}.yml", aliases % (", *a" * 8))
    directories = reading(tmp_path)
    assert len(terms_of(directories)) == 18
    [problem] = directories.problems
    assert problem.startswith(f"{tmp_path / 'c.yml'}: found 9 disks and volumes, and 18 in files")
    assert not directories.read()
    assert not directories.has_unread()
    written(tmp_path / "a.yml", GP2)
    assert directories.read(at_once=True)
    assert (len(terms_of(directories)), directories.problems) == (19, ())


def test_change_is_read_when_it_has_settled(tmp_path: Path) -> None:
    path = written(tmp_path / "x.yml", GP3)
    directories = TermsDirectories([TermsDirectory(tmp_path)])
    assert directories.read(at_once=True)
    assert terms_of(directories) == ["aws.gp3"]
    assert not directories.read()
    assert not directories.has_unread()
    written(path, GP2)
    assert not directories.read()
    assert directories.has_unread()
    assert terms_of(directories) == ["aws.gp3"]
    assert directories.read()
    assert not directories.has_unread()
    assert terms_of(directories) == ["aws.gp2"]
    assert not directories.read()


def test_file_that_is_still_written_is_not_read(tmp_path: Path) -> None:
    path = written(tmp_path / "x.yml", GP3)
    directories = reading(tmp_path)
    for text in ("", GP2[:20], GP2[:40], GP2):
        written(path, text)
        assert not directories.read()
    assert directories.problems == ()
    assert directories.read()
    assert terms_of(directories) == ["aws.gp2"]


def test_last_good_content_is_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "x.yml", GP3)
    directories = reading(tmp_path)
    for text in ("disks: [", "", "disks: 3"):
        written(path, text)
        assert not directories.read(at_once=True)
        assert terms_of(directories) == ["aws.gp3"]
        (problem,) = directories.problems
        assert problem.startswith(f"{path}:")
    assert directories.failures == {("file", "invalid"): 3}
    directories.read()
    assert directories.failures == {("file", "invalid"): 3}
    written(path, GP2)
    assert directories.read(at_once=True)
    assert (terms_of(directories), directories.problems) == (["aws.gp2"], ())


VALID = (
    "{match: {device: vda}, api_type: gp3, iops: 0}",
    "{match: {serial: s}, terms: {budget: sum, iops: 300}}",
    "{match: {volume: v}, api_type: gp2, provider: aws, size: 1GiB}",
)
BROKEN = (
    "3",
    "null",
    "[]",
    "{}",
    "{match: {device: vda}}",
    "{match: {}, api_type: gp3}",
    "{match: {device: vda}, api_type: gp3, size: many}",
    "{match: {device: vda}, api_type: gp3, size: 0}",
    "{match: {device: vda}, api_type: gp3, api_type: gp2}",
    "{match: {device: vda, devise: vdb}, api_type: gp3}",
    "{match: {device: vda}, api_type: gp3, terms: aws.gp3}",
    "{match: {device: vda}, terms: {budget: sum, iops: 300}, iops: 3}",
    "{match: {device: vda}, terms: {budget: some, iops: 300}}",
    f"{{match: {{device: vda}}, api_type: {'x' * 501}}}",
)


@given(
    entries=st.lists(st.sampled_from(VALID + BROKEN), max_size=40), copies=st.sampled_from([1, 9])
)
def test_an_invalid_entry_costs_that_entry(
    tmp_path_factory: pytest.TempPathFactory, entries: list[str], copies: int
) -> None:
    """However many are invalid, the others are used, and keep their places."""
    home = tmp_path_factory.mktemp("terms.d")
    entries = entries * copies
    valid = [place for place, text in enumerate(entries) if text in VALID]
    lines = "".join(f"- {text}\n" for text in entries)
    written(home / "x.yml", f"provider: aws\ndisks:\n{lines}" if entries else GP3)
    directories = reading(home)
    [file] = directories.files()
    if entries:
        assert [place for place, _ in file.entries()] == valid
    invalid = len(entries) - len(valid)
    assert directories.failures == ({("file", "invalid_entry"): invalid} if invalid else {})
    first = next((place for place, text in enumerate(entries) if text in BROKEN), None)
    [*texts] = directories.problems
    assert bool(texts) == (first is not None)
    if first is not None:
        assert texts[0].startswith(f"{home / 'x.yml'}:{first + 3}: disks[{first}]")
    directories.read(at_once=True)
    assert directories.failures.total() == invalid


def test_an_invalid_volume_or_problem_costs_itself(tmp_path: Path) -> None:
    text = (
        "{source: api, volumes: [{driver: d}, {driver: d, volume_handle: h}],"
        " problems: [3, {source: api, reason: denied, message: no}]}"
    )
    written(tmp_path / "x.json", text)
    directories = reading(tmp_path)
    [file] = directories.files()
    assert [each.volume_handle for each in file.volumes] == ["h"]
    assert [each.reason for each in file.problems] == ["denied"]
    assert directories.failures == {("api", "invalid_entry"): 2, ("api", "denied"): 1}


def test_removed_file_is_forgotten(tmp_path: Path) -> None:
    path = written(tmp_path / "x.yml", GP3)
    bad = written(tmp_path / "y.yml", "disks: [")
    directories = reading(tmp_path)
    path.unlink()
    bad.unlink()
    assert directories.read()
    assert (terms_of(directories), directories.problems) == ([], ())


def test_renamed_file_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "x.yml", GP3)
    directories = reading(tmp_path)
    written(tmp_path / "new", GP2).rename(path)
    directories.read()
    assert directories.read()
    assert terms_of(directories) == ["aws.gp2"]


def test_directory_that_cannot_be_listed_keeps_its_files(tmp_path: Path) -> None:
    home = tmp_path / "terms.d"
    home.mkdir()
    written(home / "x.yml", GP3)
    directories = reading(home)
    home.rename(tmp_path / "aside")
    home.write_text("not a directory")
    assert not directories.read()
    assert terms_of(directories) == ["aws.gp3"]
    assert directories.problems == (f"cannot read {home}: Not a directory",)


@pytest.mark.parametrize("kind", ["fifo", "directory", "dangling", "large"])
def test_anything_but_a_small_file_is_a_problem(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.yml"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case "dangling":
            path.symlink_to(tmp_path / "nothing")
        case "large":
            path.write_bytes(b"#" * (2**20 + 1))
    directories = reading(tmp_path)
    assert terms_of(directories) == []
    (problem,) = directories.problems
    assert problem.startswith(f"cannot read {path}: ")


@pytest.mark.parametrize("kind", ["loop", "dangling"])
def test_one_bad_link_hides_no_other_file(tmp_path: Path, kind: str) -> None:
    home = tmp_path / "terms.d"
    home.mkdir()
    path = written(home / "a.yml", GP3)
    link = home / "b.yml"
    link.symlink_to(link if kind == "loop" else tmp_path / "nothing")
    directories = reading(home)
    (problem,) = directories.problems
    assert problem.startswith(f"cannot read {link}: ")
    assert terms_of(directories) == ["aws.gp3"]
    written(path, GP2)
    assert directories.read(at_once=True)
    assert terms_of(directories) == ["aws.gp2"]
    assert directories.failures == {("file", "invalid"): 1}
    link.unlink()
    assert not directories.read(at_once=True)
    assert directories.problems == ()


def test_files_of_a_config_map_are_read(tmp_path: Path) -> None:
    """Kubernetes mounts links to links, and replaces one of them when the map changes."""
    home = tmp_path / "terms.d"
    home.mkdir()
    for name, text in (("..1", GP3), ("..2", GP2)):
        (home / name).mkdir()
        written(home / name / "x.yml", text)
    (home / "..data").symlink_to("..1")
    (home / "x.yml").symlink_to("..data/x.yml")
    directories = reading(home)
    assert (terms_of(directories), directories.problems) == (["aws.gp3"], ())
    (home / "..new").symlink_to("..2")
    (home / "..new").rename(home / "..data")
    directories.read(at_once=True)
    assert terms_of(directories) == ["aws.gp2"]


def test_links_of_detection_are_not_followed(tmp_path: Path) -> None:
    home = tmp_path / "state-detect"
    home.mkdir()
    written(home / "cloud.json", GP3)
    link = home / "link.json"
    link.symlink_to(written(tmp_path / "elsewhere.json", GP2))
    directories = reading(home, follows_links=False)
    assert terms_of(directories) == ["aws.gp3"]
    assert directories.problems == (
        f"cannot read {link}: it is a link, and links are not followed in this directory",
    )


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n",
        "admin:SECRET",
        "*SECRET",
        "!SECRET x",
        "!SECRET {a: b}",
        "- SECRET: 1\n  SECRET: 2\n",
        "- *SECRET\n",
        "'SECRET",
        "- SECRET\n-SECRET: [",
    ],
)
def test_content_that_is_no_mapping_is_not_quoted(tmp_path: Path, text: str) -> None:
    """A link may lead to a key or to passwords, and anyone may read the status page."""
    path = written(tmp_path / "x.yml", text)
    directories = reading(tmp_path)
    (problem,) = directories.problems
    assert problem.startswith(f"{path}:")
    assert "SECRET" not in problem
    assert "BEGIN" not in problem


def test_failures_of_detect_count_once_per_attempt(tmp_path: Path) -> None:
    text = (
        "{{source: metadata, tried_at: '2026-01-01T00:00:0{}Z',"
        " problems: [{{source: api, reason: denied, message: no}}]}}"
    )
    directories = TermsDirectories([TermsDirectory(tmp_path)])
    for number in range(3):
        written(tmp_path / "x.json", text.format(number))
        directories.read(at_once=True)
        directories.read(at_once=True)
    assert directories.failures == {("api", "denied"): 3}


def test_number_of_files_is_bounded(tmp_path: Path) -> None:
    for number in range(MOST_FILES + 5):
        written(tmp_path / f"{number:04}.yml", GP3)
    files, problems = read_terms_files([TermsDirectory(tmp_path)])
    assert len(files) == MOST_FILES
    expected = f"found {MOST_FILES + 5} files in {tmp_path}; expected at most {MOST_FILES}"
    assert problems == (f"{expected}, which are read",)
