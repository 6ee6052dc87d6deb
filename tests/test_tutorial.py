"""The tutorial: commands, configuration and output; and pages in Russian, which have the same."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from disksla.commands.cli import build_parser

ROOT = Path(__file__).resolve().parent.parent
TUTORIAL = ROOT / "docs" / "tutorial.md"
FAQ = ROOT / "docs" / "faq.md"
RUNBOOK = ROOT / "docs" / "runbook.md"
TRANSLATED = [TUTORIAL, ROOT / "README.md"]
RULES = "/etc/prometheus/disksla"

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r" {2,}# .*$", re.MULTILINE)
"""What follows a command or a line of YAML; it is translated."""
PROMPT = re.compile(r"^(?:\$|mon1#|#) (.*)$", re.MULTILINE)
NAME_OF_COMMAND = re.compile(r"disksla [a-z-]+")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def translation(path: Path) -> Path:
    return path.with_suffix(".ru.md")


def blocks(path: Path) -> list[tuple[str, str]]:
    """Return the language and the content of each code block, without comments."""
    return [(language, COMMENT.sub("", body)) for language, body in FENCE.findall(read(path))]


def indented(path: Path) -> list[str]:
    """Return the lines of code that are indented, without comments."""
    prose = FENCE.sub("", read(path))
    return [COMMENT.sub("", line) for line in prose.splitlines() if line.startswith("    ")]


def outline(path: Path) -> list[str]:
    """Return the level of each heading, and the number of columns of each row of a table."""
    lines = FENCE.sub("", read(path)).splitlines()
    headings = (line.split()[0] if line.startswith("#") else "" for line in lines)
    return [
        heading or f"{line.count('|')} columns"
        for heading, line in zip(headings, lines, strict=True)
        if heading or line.startswith("|")
    ]


def links(path: Path) -> set[str]:
    """Return the targets of links and pictures, but for those on the same page."""
    prose = FENCE.sub("", read(path))
    targets = re.findall(r"\]\(([^)]+)\)", prose)
    return {target.replace(".ru.md", ".md") for target in targets if not target.startswith("#")}


def configuration(name: str) -> str:
    """Return the configuration file of the tutorial with this path."""
    [found] = [body for _, body in blocks(TUTORIAL) if body.startswith(f"# {name}\n")]
    return found


def shown(command: str) -> str:
    """Return what the tutorial shows that a command prints."""
    console = "".join(body for language, body in blocks(TUTORIAL) if language == "console")
    [found] = re.findall(
        rf"^(?:\$|mon1#|#) {re.escape(command)}\n(.*?)(?=^(?:\$|mon1#|#) |\Z)",
        console,
        flags=re.MULTILINE | re.DOTALL,
    )
    return "\n".join(line.rstrip() for line in found.strip().splitlines())


def printed(*command: str) -> str:
    """Return what a command prints, without blanks at the ends of lines."""
    ended = subprocess.run(
        command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return "\n".join(line.rstrip() for line in ended.stdout.strip().splitlines())


def disksla(*arguments: str) -> str:
    return printed(str(Path(sys.executable).with_name("disksla")), *arguments)


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        shutil.which(program) is None, reason=f"NOT TESTED: {program} is not installed"
    )


def own_commands(path: Path) -> list[str]:
    """Return the commands of disksla on a page: at a prompt, or with arguments in a sentence."""
    prompted = [line for _, body in FENCE.findall(read(path)) for line in PROMPT.findall(body)]
    code = re.findall(r"`([^`]+)`", FENCE.sub("", read(path)))
    inline = [part for part in code if not NAME_OF_COMMAND.fullmatch(part)]
    return [line for line in prompted + inline if line.startswith("disksla ")]


@pytest.mark.parametrize("path", [TUTORIAL, FAQ], ids=lambda path: path.stem)
def test_commands_are_accepted_by_the_parser(path: Path) -> None:
    commands = own_commands(path)
    assert len(commands) > 2
    for command in commands:
        words = shlex.split(command, comments=True)[1:]
        build_parser([words[0]]).parse_args(words)


def test_configuration_of_disksla_is_good(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.write_text(configuration("/etc/disksla/disksla.yml"), encoding="utf-8")
    said = disksla("check-config", "--config.file", str(file)).replace(
        str(file), "/etc/disksla/disksla.yml"
    )
    assert said == shown("disksla check-config")


def test_output_of_limits_is_what_the_command_prints() -> None:
    command = "disksla limits vk.ceph-ssd 10GiB"
    assert disksla(*command.split()[1:]) == shown(command)


@needs("promtool")
def test_configuration_of_prometheus_is_valid(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    shutil.copytree(ROOT / "grafana" / "out", rules)
    file = tmp_path / "prometheus.yml"
    text = configuration("/etc/prometheus/prometheus.yml")
    file.write_text(text.replace(RULES, str(rules)), encoding="utf-8")
    said = printed("promtool", "check", "config", str(file))
    said = said.replace(str(file), "/etc/prometheus/prometheus.yml").replace(str(rules), RULES)
    assert said == shown("promtool check config /etc/prometheus/prometheus.yml")
    [job] = yaml.safe_load(text)["scrape_configs"]
    assert f'job="{job["job_name"]}"' in read(rules / "prometheus_alerts.yaml")


@needs("amtool")
def test_configuration_of_alertmanager_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "alertmanager.yml"
    file.write_text(configuration("/etc/prometheus/alertmanager.yml"), encoding="utf-8")
    said = printed("amtool", "check-config", str(file)).partition("\n")[0]
    expected = shown("amtool check-config /etc/prometheus/alertmanager.yml").partition("\n")[0]
    assert said.replace(str(file), "/etc/prometheus/alertmanager.yml") == expected


@needs("fio")
def test_load_is_accepted_by_fio(tmp_path: Path) -> None:
    console = "".join(body for language, body in blocks(TUTORIAL) if language == "console")
    prompted = PROMPT.findall(console.replace("\\\n", ""))
    [load] = [line.rstrip(" &") for line in prompted if line.startswith("fio ")]
    command = load.replace("/srv/data", str(tmp_path))
    assert printed(*command.split(), "--parse-only") == ""


@needs("promtool")
def test_query_is_valid(tmp_path: Path) -> None:
    [query] = [body for language, body in blocks(TUTORIAL) if language == "promql"]
    rules = {"groups": [{"name": "tutorial", "rules": [{"record": "a:b:c", "expr": query}]}]}
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump(rules), encoding="utf-8")
    assert "1 rules found" in printed("promtool", "check", "rules", str(file))


def test_runbook_has_the_alert_of_the_tutorial() -> None:
    [(address, alert)] = re.findall(r"^runbook_url +(\S+)#(\w+)$", read(TUTORIAL), re.MULTILINE)
    assert address == "http://db1:10056/runbook"
    assert f"\n## {alert}\n" in read(RUNBOOK)
    assert f"alert: {alert}\n" in read(ROOT / "grafana" / "out" / "prometheus_alerts.yaml")


@pytest.mark.parametrize("path", TRANSLATED, ids=lambda path: path.stem)
def test_translation_has_the_same_code_links_headings_and_tables(path: Path) -> None:
    translated = translation(path)
    assert blocks(translated) == blocks(path)
    assert indented(translated) == indented(path)
    assert outline(translated)[: len(outline(path))] == outline(path)
    assert links(translated) == links(path)


@pytest.mark.parametrize("path", TRANSLATED, ids=lambda path: path.stem)
def test_pages_of_two_languages_link_each_other(path: Path) -> None:
    translated = translation(path)
    assert f"]({translated.name})" in read(path)
    assert f"]({path.name})" in read(translated)


@pytest.mark.parametrize("path", [TUTORIAL, translation(TUTORIAL), FAQ], ids=lambda p: p.stem)
def test_links_lead_to_headings(path: Path) -> None:
    for name, anchor in re.findall(r"\]\(([^):#]*)#([^)]+)\)", read(path)):
        target = path.parent / name if name else path
        titles = re.findall(r"^#+ (.*)$", FENCE.sub("", read(target)), flags=re.MULTILINE)
        assert anchor in {slug(title) for title in titles}, f"{name}#{anchor}"


def slug(title: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
