"""Checks of the files: configuration, terms files, web configuration, state directory."""

from collections.abc import Iterator

from disksla.base.units import MIB, format_size
from disksla.commands.doctor_checks.check_result import Check, CheckResult
from disksla.commands.doctor_checks.facts import AccessFacts, ConfigurationFacts, MachineFacts

LEAST_FREE_BYTES = 32 * MIB
"""Twice the largest state file: the new one is written beside the old one."""
_DENIED = "Permission denied"
_AS_ROOT = "sudo disksla doctor"


def check_configuration(machine: MachineFacts) -> Iterator[CheckResult]:
    """Yield the results of all checks of the files of the operator."""
    configuration = machine.configuration
    yield from _file(configuration, machine.is_root)
    for problem in configuration.terms_problems:
        for line in problem.splitlines():
            yield _invalid(Check("configuration.terms"), line, machine.is_root)
    if configuration.web is not None:
        web = configuration.web
        if web.problem is None:
            yield Check("configuration.web", web.path).ok(web.description)
        else:
            for line in web.problem.splitlines():
                fix = f"disksla check-config --web.config.file {web.path}"
                yield _invalid(Check("configuration.web"), line, machine.is_root, fix)
    yield from _access(machine.access)


def _file(configuration: ConfigurationFacts, is_root: bool) -> Iterator[CheckResult]:  # noqa: FBT001 -- a fact
    check, path = Check("configuration.file"), configuration.path
    if configuration.problem is not None:
        fix = (
            f"disksla check-config --config.file {path}"
            if path is not None
            else "correct the file"
        )
        for line in configuration.problem.splitlines():
            yield _invalid(check, line, is_root, fix)
        return
    if path is None:
        yield check.ok("none is named or in /etc/disksla: all disks that are found are monitored")
    else:
        yield check.ok(f"{path} is valid")
    for text in configuration.notes:
        yield Check("configuration.file", path).note(
            f"{text}; used as it is",
            expected="values within the bounds of the catalogue, which providers may have raised",
        )
    if configuration.own_rows:
        rows = configuration.own_rows
        yield Check("configuration.catalog").ok(
            f"catalog.d adds {rows} type{'' if rows == 1 else 's'}"
        )


def _invalid(
    check: Check,
    problem: str,
    is_root: bool,  # noqa: FBT001 -- a fact
    fix: str = "correct the file; its last valid content stays in force",
) -> CheckResult:
    """Return a problem of a file; it is not the file's if this user may not read it."""
    if problem.endswith(_DENIED) and not is_root:
        return check.note(problem, expected="a file that may be read", fix=_AS_ROOT)
    return check.wrong(problem, expected="a valid file", fix=fix)


def _access(access: AccessFacts) -> Iterator[CheckResult]:
    check = Check("configuration.access")
    if not access.has_user:
        yield check.wrong(
            f"the user {access.user} of the unit does not exist",
            expected="a user that the daemon can run as",
            fix="systemd-sysusers",
        )
        return
    if access.problem is not None:
        yield check.note(access.problem, expected="files that it may read", fix=_AS_ROOT)
        return
    for path in access.unreadable:
        yield Check("configuration.access", path).wrong(
            f"the user {access.user} may not read it",
            expected="a file that the daemon may read",
            fix=f"chgrp {access.user} {path} && chmod 640 {path}",
        )
    if not access.unreadable:
        yield check.ok(f"the user {access.user} may read the files")


def check_state(machine: MachineFacts) -> Iterator[CheckResult]:
    """Yield the results of all checks of the state directory."""
    state, access = machine.state, machine.access
    path = state.directory
    check = Check("state.directory", path)
    expected = "a directory that the daemon may write, so that credits outlive a restart"
    if state.problem is not None:
        # Without a unit, such as after `make run`, the daemon works without it.
        yield (check.note if machine.unit is None else check.wrong)(
            state.problem,
            expected=expected,
            fix=f"install -d -o {access.user} -g {access.user} -m 0755 {path}",
        )
        return
    if state.is_read_only:
        yield check.wrong(
            "its file system is read-only",
            expected=expected,
            fix=f"mount -o remount,rw $(findmnt -n -o TARGET -T {path})",
        )
    elif access.problem is None and not access.may_write_state:
        yield check.wrong(
            f"the user {access.user} may not write to it",
            expected=expected,
            fix=f"chown {access.user}: {path}",
        )
    else:
        yield Check("state.directory").ok(
            f"{path} exists" if access.problem else f"{path} is writable"
        )
    free = format_size(state.free_bytes)
    if state.free_bytes < LEAST_FREE_BYTES:
        yield Check("state.space", path).wrong(
            f"{free} are free",
            expected=f"{format_size(LEAST_FREE_BYTES)} or more",
            fix=f"df -h {path}",
        )
    else:
        yield Check("state.space").ok(f"{free} are free")
