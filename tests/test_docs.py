"""The documentation is true: its examples run, its tables are complete, its links lead somewhere."""

import ast
import inspect
import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from heedful import (
    Controller,
    EmbeddedModel,
    MemorySource,
    Policy,
    ScriptedModel,
    Task,
    arms,
    errors,
    new_entry,
)
from heedful.cli.main import run
from heedful.cli.policy import Arm
from heedful.decisions import decision_fields, decision_of
from heedful.passes import GUARDS
from heedful.stages.confidence import SIGNALS
from tests.making import FixedBank

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "heedful"
COMMANDS = ROOT / "docs" / "commands"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLE_URL = "http://127.0.0.1:8000/v1"
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, what else its fence says, where it begins, its text."""

    language: str
    about: str
    line: int
    body: str

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block that the tests run; installing is the business of CI."""
        if self.language != "sh":
            return []
        return [line for line in self.body.splitlines() if line.startswith(("heedful ", "export "))]

    @property
    def runs(self) -> bool:
        return bool(self.commands) or (self.language == "python" and self.about != "no-run")


def blocks_of(text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        language, _, about = match["info"].strip().partition(" ")
        yield Block(language, about, text.count("\n", 0, match.start("body")), match["body"])


def words_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def needs_the_model(blocks: list[Block]) -> bool:
    commands = [command for block in blocks for command in block.commands]
    asks = any(not command.startswith(("heedful bank ", "export ")) for command in commands)
    return asks or any("EmbeddedModel" in block.body for block in blocks if block.language == "python")


def pages_that_run() -> Iterator[object]:
    for page in PAGES:
        blocks = list(blocks_of(words_of(page)))
        if any(block.runs for block in blocks):
            marks = [pytest.mark.engine] if needs_the_model(blocks) else []
            yield pytest.param(page, marks=marks, id=name_of(page))


@dataclass(frozen=True)
class Reader:
    """Someone who follows a page from top to bottom, in a folder and with a store of their own."""

    page: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    engine: EmbeddedModel | None
    names: dict[str, object]

    def follow(self, block: Block) -> None:
        if block.language == "python" and block.runs:
            self.execute(block)
        elif block.language in ("text", "json") and block.about:
            Path(block.about).write_text(block.body, encoding="utf-8")
        for command in block.commands:
            self.obey(command, f"{name_of(self.page)}:{block.line}: {command}")

    def execute(self, block: Block) -> None:
        code = "\n" * block.line + self.here(block.body)
        exec(compile(code, str(self.page), "exec"), self.names)

    def obey(self, command: str, place: str) -> None:
        words = shlex.split(self.here(command))
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.monkeypatch.setenv(name, self.key() if name == "OPENAI_API_KEY" else value)
            return
        self.monkeypatch.setattr(sys, "argv", words)
        code = 0
        try:
            run()
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = self.capsys.readouterr()
        assert code == 0, f"{place} ended with {code}: {err}"
        if "--json" in words:
            missing = [field for field in json.loads(out) if f"`{field}`" not in words_of(self.page)]
            assert missing == [], f"{place} prints fields that its page does not explain"

    def here(self, text: str) -> str:
        """The example's endpoint is the embedded model's own server."""
        return text if self.engine is None else text.replace(EXAMPLE_URL, self.engine.chat.base_url)

    def key(self) -> str:
        assert self.engine is not None
        return self.engine.chat.key or ""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", list(pages_that_run()))
def test_the_examples_of_a_page_run_in_order(
    page: Path,
    request: pytest.FixtureRequest,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocks = list(blocks_of(words_of(page)))
    engine = None
    if needs_the_model(blocks):
        request.getfixturevalue("minilm")
        engine = request.getfixturevalue("engine")
        # The loaded model answers all pages through its server: loading it for each command takes longer.
        monkeypatch.setenv("HEEDFUL_URL", engine.chat.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", engine.chat.key)
    monkeypatch.chdir(home)
    reader = Reader(page, monkeypatch, capsys, engine, {"__name__": page.stem})
    for block in blocks:
        reader.follow(block)


def test_the_example_pages_are_found_and_the_readme_is_among_them() -> None:
    named = [name_of(page) for page in PAGES if any(block.runs for block in blocks_of(words_of(page)))]
    assert {"README.md", "docs/quickstart.md", "docs/concepts.md", "docs/extending.md"} <= set(named)
    assert {f"docs/commands/{name}.md" for name in ("ask", "bank", "demo", "doctor")} <= set(named)


def help_of(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["heedful", *words, "--help"])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        run()
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)


def options_in(help_text: str) -> set[str]:
    """The options of a help page: what its option rows begin with."""
    rows = re.findall(r"^  (?:(-[a-z]), )?(--[a-z-]+)(?: / (--[a-z-]+))?", help_text, re.MULTILINE)
    return {option for row in rows for option in row if option}


def options_of(section: str) -> set[str]:
    """The options of a page: what the first cells of its table rows hold."""
    cells = re.findall(r"^\| (`-[^|]*) \|", section, re.MULTILINE)
    return {option for cell in cells for option in re.findall(r"`(--?[a-z][a-z-]*)`", cell)}


def documented_commands() -> Iterator[Any]:
    for page in sorted(COMMANDS.glob("*.md")):
        if page.name == "README.md":
            continue
        sections = re.split(r"^## heedful (?=\w+ \w)", words_of(page), flags=re.MULTILINE)
        if len(sections) == 1:
            yield pytest.param([page.stem], sections[0], id=page.stem)
        for section in sections[1:]:
            words = section.splitlines()[0].split()
            yield pytest.param(words, section, id=" ".join(words))


@pytest.mark.parametrize(("words", "section"), list(documented_commands()))
def test_a_page_has_the_options_that_help_has_and_no_other(
    words: list[str], section: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = options_in(help_of(words, monkeypatch, capsys))
    assert "--help" in told
    assert options_of(section) == told


def test_the_index_of_commands_has_a_page_for_each_and_every_group_is_complete(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    documented = {" ".join(param.values[0]) for param in documented_commands()}
    for group in ("agent", "bank", "weights", "study", "decisions", "key", "store"):
        commands = help_of([group], monkeypatch, capsys).partition("Commands:\n")[2]
        listed = re.findall(r"^  (\w+)  ", commands, re.MULTILINE)
        assert listed
        assert {f"{group} {name}" for name in listed} <= documented
    index = words_of(COMMANDS / "README.md")
    assert [name for name in documented if f"({name.split()[0]}.md)" not in index] == []


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", words_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^()\s]+)\)", FENCE.sub("", words_of(page))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    assert broken == []


def undocumented(names: set[str], *pages: str) -> list[str]:
    text = "\n".join(words_of(ROOT / "docs" / page) for page in pages)
    return sorted(name for name in names if f"`{name}`" not in text)


def strings_of(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def reasons_in(file: Path) -> set[str]:
    """The reasons that a module gives: what it passes as `reason=`, and codes that it returns."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(words_of(file))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Route", "Verdict"):
            found |= {s for k in node.keywords if k.arg == "reason" for s in strings_of(k.value)}
        elif isinstance(node, ast.Return) and file.stem in ("guard", "budget") and node.value is not None:
            found |= {s for s in strings_of(node.value) if re.fullmatch(r"[a-z]*:?[a-z-]+", s)}
    return found


def test_every_signal_is_explained() -> None:
    assert undocumented(set(SIGNALS), "concepts.md") == []


def test_every_reason_and_every_guard_is_explained() -> None:
    modules = [*(PACKAGE / "stages").glob("*.py"), PACKAGE / "control.py"]
    reasons = {reason for module in modules for reason in reasons_in(module)}
    assert {"format:no-answer", "valid:not-allowed", "margin met", "cooldown", "nothing recalled"} <= reasons
    named = {f"contract{reason}" if reason.startswith(":") else reason for reason in reasons}
    assert undocumented({*named, *GUARDS, "NAME:fault"}, "concepts.md") == []


def test_every_arm_and_every_field_of_a_policy_is_explained() -> None:
    functions = {name for name, made in vars(arms).items() if inspect.isfunction(made)}
    concepts = words_of(ROOT / "docs" / "concepts.md")
    assert [name for name in functions if f"| `{name}(" not in concepts] == []
    assert undocumented(set(get_args(Arm)), "commands/ask.md") == []
    assert undocumented(set(Policy.__dataclass_fields__), "concepts.md") == []


def test_every_error_has_its_exit_code_in_the_index() -> None:
    index = words_of(COMMANDS / "README.md")
    rows = dict(re.findall(r"^\| (\d+) \| (.*) \|$", index, re.MULTILINE))
    for name, error in vars(errors).items():
        if inspect.isclass(error):
            assert issubclass(error, errors.HeedfulError)
            assert f"`{name}`" in rows[str(error.exit_code)]
    assert {"0", "130"} <= set(rows)


def test_every_environment_variable_is_in_the_index() -> None:
    sources = "\n".join(words_of(file) for file in PACKAGE.rglob("*.py"))
    variables = set(re.findall(r"HEEDFUL_[A-Z_]+|OPENAI_API_KEY", sources))
    assert undocumented(variables, "commands/README.md") == []


def test_every_field_of_a_decision_record_is_explained() -> None:
    source = MemorySource(bank=FixedBank([new_entry("It is blue.", kind="fact")]))
    controller = Controller(
        model=ScriptedModel(script=lambda prompt: ("blue", -0.5)),
        policy=arms.choose("memory", threshold=0.0, margin=0.0),
        sources={"memory": source},
    )
    outcome = controller.answer_sync(Task(question="What is it?"))
    record = decision_fields(decision_of(outcome, at=0.0))
    record |= {"faults": [{"stage": "journal", "error": "StoreError: full"}]}
    sources, policy = record.pop("sources"), record.pop("policy")
    settings = {field for spec in sources.values() for field in spec}
    fields = {*keys_of(record), *settings, *policy, *policy["budget"], "sources", "policy"}
    assert undocumented(fields, "concepts.md") == []


def keys_of(value: object) -> set[str]:
    if isinstance(value, dict):
        return {*value, *(key for inner in value.values() for key in keys_of(inner))}
    return {key for inner in value for key in keys_of(inner)} if isinstance(value, list) else set()


def test_every_dependency_has_its_line_in_the_design_notes() -> None:
    project = tomllib.loads(words_of(ROOT / "pyproject.toml"))["project"]
    note = words_of(ROOT / "docs" / "design" / "002-dependencies.md")
    needed = [re.split(r"[^\w-]", line)[0] for line in project["dependencies"]]
    assert [name for name in needed if f"\n| {name} |" not in note] == []


def test_no_page_names_a_machine() -> None:
    machine = re.compile(r"/(?:root|home|work|tmp)/|" + re.escape(os.path.expanduser("~") + "/"))
    pages = [*PAGES, ROOT / "CONTRIBUTING.md"]
    assert [name_of(page) for page in pages if machine.search(words_of(page))] == []
