"""cli.check - what may not stand in a program, before it runs.

For: `onefold check PATH…`: reading files, showing findings, and finding the user's own files behind imports.
Never: imports what it checks; opens a store; asks an app.
Was wrong once: only the files named. A commit that changed a module's rules, in a file of their own, was
told that all was well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onefold.cli import show
from onefold.cli.answers import DONE, FAILED
from onefold.cli.files import MOST, picture
from onefold.cli.options import json_option

if TYPE_CHECKING:
    from onefold.fence import Finding, Source

UP = 12  # folders above a file in which an import is looked for; no package is nested deeper
SOURCES = ("", "src")
MOST_DATA = 10 * MOST  # JSON files below a folder; to look into each takes some 50 us
LARGEST = 16 << 20  # bytes of one that nobody named: ten thousand automations have half of it


def _known(_: click.Context, __: click.Parameter, chosen: tuple[str, ...]) -> tuple[str, ...]:
    from onefold.fence import RULES
    from onefold.reflex import checking
    from onefold.terms.ids import nearest

    known = (*RULES, *checking.RULES)
    for rule in chosen:
        if rule not in known:
            close = nearest(rule, known)
            hint = f" Did you mean {close}?" if close else f" There are {', '.join(known)}."
            raise click.BadParameter(f"there is no rule {rule!r}.{hint}")
    return chosen


@click.command("check")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--rule", "rules", metavar="NAME", multiple=True, callback=_known, help="Only this rule; may be repeated."
)
@json_option
def check(paths: tuple[Path, ...], rules: tuple[str, ...], as_json: bool) -> None:
    """Find what may not stand in modules, charts, cells, outside an actuator's steps, and in automations.

    Nothing is loaded. A folder stands for the Python files below it, and for the JSON files of automations. Silence a
    finding in Python with `# onefold: allow RULE because REASON` on its line, or alone on the line above.
    """
    from onefold.fence import check as look
    from onefold.reflex.checking import check as look_at_definitions

    sources = [_read(path) for path in _files(paths)]
    if not sources:
        raise click.UsageError("There is no Python file to check there, and no file of automations.")
    programs = [source for source in sources if not source.file.endswith(".json")]
    definitions = [source for source in sources if source.file.endswith(".json")]
    all_found = [*look(programs, find), *look_at_definitions(definitions)]
    found = [finding for finding in all_found if not rules or finding.rule in rules]
    _print(found, len(sources), as_json)
    click.get_current_context().exit(FAILED if found else DONE)


def _print(found: Sequence[Finding], files: int, as_json: bool) -> None:
    if as_json:
        show.raw(show.compact({"findings": [_row(finding) for finding in found]}).encode())
        return
    for finding in found:
        click.echo(f"{show.plain(finding.file)}:{finding.line}: {finding.rule}: {show.plain(finding.problem)}")
        if finding.instead:
            click.echo(f"    {show.plain(finding.instead)}")
    checked = "1 file" if files == 1 else f"{files} files"
    told = "1 finding" if len(found) == 1 else f"{len(found)} findings" if found else "nothing found"
    click.echo(f"{checked}: {told}.", err=True)


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "file": finding.file,
        "line": finding.line,
        "rule": finding.rule,
        "problem": finding.problem,
        "instead": finding.instead,
    }


# --- files --------------------------------------------------------------------------------------------


def _files(paths: Sequence[Path]) -> list[Path]:
    """Each file once, in order. What is named is checked, whatever it is called; below a folder, Python and what looks
    like automations."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            found[path.resolve()] = None
            continue
        below = picture([path.resolve()])
        data = picture([path.resolve()], ".json", MOST_DATA)
        if len(below) >= MOST or len(data) >= MOST_DATA:
            many = MOST if len(below) >= MOST else MOST_DATA
            raise click.UsageError(f"{path} holds more than {many} files; name the folder of your own code.")
        own = [file for file in below if file.suffix == ".py"]
        found.update(dict.fromkeys(sorted([*own, *(file for file in data if _is_definitions(file, data[file][1]))])))
    return list(found)


def _is_definitions(path: Path, size: int) -> bool:
    """Whether a file below a folder holds automations; other JSON is not ours, and may be very large."""
    from onefold.reflex.checking import is_definitions

    return path.suffix == ".json" and size <= LARGEST and is_definitions(_read(path).raw)


def _read(path: Path) -> Source:
    from onefold.fence import Source

    try:
        return Source(_shown(path), path.read_bytes())
    except OSError as fault:
        raise click.UsageError(f"{_shown(path)} cannot be read: {fault.strerror}.") from None


def _shown(path: Path) -> str:
    """A file as findings call it: from the working folder, where it is below that."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def find(importer: str, module: str, level: int) -> Source | None:
    """The file behind an import, when it is one of the user's: beside the importer, or below a folder above it."""
    parts = module.split(".") if module else []
    for folder in _folders(Path(importer).resolve(), level):
        inner = folder.joinpath(*parts)
        for candidate in (inner / "__init__.py", *([inner.with_name(f"{inner.name}.py")] if parts else [])):
            if candidate.is_file():
                return _read(candidate.resolve())
    return None


def _folders(importer: Path, level: int) -> Iterator[Path]:
    above = importer.parents
    if level:
        if level <= len(above):
            yield above[level - 1]
        return
    for folder in above[:UP]:
        for inner in SOURCES:
            yield folder / inner
        if (folder / "pyproject.toml").is_file() or (folder / ".git").exists():
            return
