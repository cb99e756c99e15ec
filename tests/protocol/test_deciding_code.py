"""What breaks a lock: a change of what is decided, and nothing else."""

import shutil
import subprocess
from pathlib import Path

import pytest

from heedful.benchmarks import BENCHMARKS
from heedful.benchmarks.questions import OwnQuestions
from heedful.protocol import deciding_code
from heedful.protocol.deciding_code import PACKAGE, code_state, module_digests, tree_digest
from tests.protocol.making import Letters

SVAMP = BENCHMARKS["svamp"]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of heedful's code to edit."""
    return Path(shutil.copytree(PACKAGE, tmp_path / "heedful", ignore=shutil.ignore_patterns("__pycache__")))


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def changes(package: Path) -> list[str]:
    return code_state(SVAMP).changed(module_digests(SVAMP, package))


def test_a_comment_a_docstring_the_layout_or_an_import_changes_nothing(package: Path) -> None:
    route = package / "stages" / "route.py"
    edit(route, '"""Decide', '# why\n"""Edited. Decide')
    edit(route, '"""Consult', '"""Edited. Consult')
    edit(route, "    if reason", "\n    # so\n    if reason")
    edit(package / "stages" / "guard.py", "from heedful.types import", "from heedful.values import")
    assert changes(package) == []


def test_a_new_benchmark_and_an_edit_of_another_one_change_nothing(package: Path) -> None:
    (package / "benchmarks" / "golf.py").write_text("GOLF = 18\n")
    edit(package / "benchmarks" / "__init__.py", "BENCHMARKS:", "GOLF = 18\nBENCHMARKS:")
    edit(package / "benchmarks" / "asdiv.py", "asdiv", "asdiv2")
    edit(package / "benchmarks" / "multiple_choice.py", "max_tokens", "most_tokens")
    assert changes(package) == []


def test_another_comparison_is_named_by_its_module(package: Path) -> None:
    edit(package / "stages" / "route.py", "confidence < policy.threshold", "confidence <= policy.threshold")
    assert changes(package) == ["stages/route.py"]


@pytest.mark.parametrize("module", ["svamp", "word_problems", "metrics", "items"])
def test_the_benchmark_in_use_and_what_it_imports_decide(package: Path, module: str) -> None:
    file = package / "benchmarks" / f"{module}.py"
    file.write_text(file.read_text() + "\nCHANGED = 1\n")
    assert changes(package) == [f"benchmarks/{module}.py"]


def test_a_module_that_is_gone_or_new_is_named(package: Path) -> None:
    (package / "stages" / "budget.py").rename(package / "stages" / "purse.py")
    assert changes(package) == ["stages/budget.py", "stages/purse.py"]


def test_own_questions_and_benchmarks_of_other_packages_have_their_code_in_it() -> None:
    own = code_state(OwnQuestions(name="own", fit=Path("questions.jsonl"))).modules
    assert {"benchmarks/questions.py", "benchmarks/metrics.py"} <= own.keys()
    assert not {"benchmarks/svamp.py", "benchmarks/word_problems.py"} & own.keys()
    assert "tests.protocol.making" in code_state(Letters()).modules


def test_equal_code_has_equal_digests_whatever_stands_around_it(tmp_path: Path) -> None:
    files = [tmp_path / "a.py", tmp_path / "b.py", tmp_path / "c.py"]
    files[0].write_text('"""Doc."""\nimport os\ndef f(a):\n    """Doc."""\n    return a < 1  # so\n')
    files[1].write_text("def f(a): return (a <\n 1)\n")
    files[2].write_text("def f(a): return a > 1\n")
    same, as_well, other = map(tree_digest, files)
    assert same == as_well
    assert same != other


def test_the_commit_is_recorded_where_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    git = subprocess.run(
        ["git", "-C", str(PACKAGE), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    state = code_state(SVAMP)
    assert state.commit == (git.stdout.strip() or None)
    assert (state.dirty is None) == (state.commit is None)
    monkeypatch.setattr(deciding_code, "PACKAGE", tmp_path)
    state = code_state(SVAMP)
    assert (state.commit, state.dirty) == (None, None)
