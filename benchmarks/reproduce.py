"""Rebuild every table and figure of README.md and of the pages in results/ from the published ledgers.

    python benchmarks/reproduce.py            # fail on any difference
    python benchmarks/reproduce.py --pages    # only the pages, from the published reports
    python benchmarks/reproduce.py --write    # write reports, tables and figures

It needs no data, no model and no network. First every report is rebuilt from its ledger and lock. Then each
block between `<!-- table: NAME -->` and `<!-- end -->` is compared with the table of that name. Tables that
need many fits are made from results/labels.json and results/governance.json, which their scripts write.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from published import (
    agents,
    arms,
    curves,
    experiments,
    frontier,
    goals,
    governance,
    mechanism,
    overview,
    transfer,
)
from published.cells import RESULTS
from published.drawing import PublishedFigure

from heedful.agents.agent_report import write_agent_report
from heedful.agents.agent_workspace import AgentFolder, open_agent_folder, read_entry_texts
from heedful.protocol.line_file import has_lines
from heedful.protocol.workspace import Workspace
from heedful.report.write import write_report

ROOT = RESULTS.parent
PAGES = (ROOT / "README.md", *sorted(RESULTS.glob("*.md")))
MOST_BYTES = 60_000_000
BLOCK = re.compile(r"(<!-- table: (?P<name>[\w.-]+) -->\n)(?:(?!<!-- ).*\n)*(<!-- end -->)")
TABLES: Mapping[str, Callable[[], str]] = {
    "summary": arms.summary_table,
    "studies": overview.studies_table,
    "value": arms.value_table,
    "lead": arms.lead_table,
    "price": arms.price_table,
    "matched": arms.matched_table,
    "crossfit": arms.crossfit_table,
    "goals": goals.goals_table,
    "answers": transfer.answers_table,
    "answers-crossfit": transfer.answers_crossfit_table,
    "shipped-prior": transfer.shipped_prior_table,
    "small-model": transfer.small_model_table,
    "small-model-crossfit": transfer.small_model_crossfit_table,
    "paper": arms.paper_table,
    "paper-answers": arms.paper_answers_table,
    "loop": experiments.loop_table,
    "loop-test": experiments.loop_test_table,
    "counterfactual": experiments.counterfactual_table,
    "counterfactual-asdiv": experiments.counterfactual_asdiv_table,
    "controls": experiments.controls_table,
    "labels": experiments.labels_table,
    "separability": mechanism.separability_table,
    "bins": mechanism.bins_table,
    "groups": governance.groups_table,
    "retired": governance.effect_table,
    "author": governance.author_table,
    "poisoned": governance.poisoned_table,
}
REPORT_FILES = ("report.json", "report.md", "report.tex")
ARMS = "arms-"
"""A block `arms-NAME` has every arm of the study NAME."""
AGENTS = "agents-"
"""A block `agents-NAME` has every arm of the agent study NAME."""


def table_named(name: str) -> str:
    if name.startswith(ARMS):
        return arms.arms_table(name.removeprefix(ARMS))
    if name.startswith(AGENTS):
        return agents.agents_table(name.removeprefix(AGENTS))
    if name not in TABLES:
        names = ", ".join([*TABLES, f"{ARMS}STUDY", f"{AGENTS}STUDY"])
        raise SystemExit(f"there is no table {name!r}; choose from {names}")
    return TABLES[name]()


def rebuilt(page: Path) -> str:
    """A page with every block as it is today."""
    text = page.read_text(encoding="utf-8")
    return BLOCK.sub(lambda block: f"{block[1]}{table_named(block['name'])}\n{block[3]}", text)


def figures() -> list[PublishedFigure]:
    return [*frontier.frontier_figures(), curves.labels_figure()]


def studies() -> list[Path]:
    return sorted(file.parent for file in RESULTS.glob("*/report.json"))


def write_study_report(folder: Path) -> None:
    """Write the report of a study; that of an agent study without texts if its bank is not published."""
    if has_lines(AgentFolder(folder).episodes):
        agents_folder, study = open_agent_folder(folder, None)
        write_agent_report(agents_folder, read_entry_texts(agents_folder, study))
    else:
        write_report(Workspace(folder))


def changed_reports() -> Iterator[str]:
    """Reports whose numbers or words differ from what ledger and lock say."""
    for study in studies():
        with TemporaryDirectory() as folder:
            copy = Path(folder) / study.name
            shutil.copytree(study, copy)
            write_study_report(copy)
            for name in REPORT_FILES:
                if (study / name).exists() and (copy / name).read_bytes() != (study / name).read_bytes():
                    yield f"results/{study.name}/{name} differs from what its ledger says"


def changed_pages() -> Iterator[str]:
    for page in PAGES:
        before, after = page.read_text(encoding="utf-8"), rebuilt(page)
        for old, new in zip(BLOCK.finditer(before), BLOCK.finditer(after), strict=True):
            if old[0] != new[0]:
                yield f"{page.relative_to(ROOT)}: the table {old['name']} is not what the ledgers say"
    for figure in figures():
        if figure.outdated:
            yield f"{figure.file.relative_to(ROOT)} was drawn from other numbers"


def size_problem() -> Iterator[str]:
    total = sum(file.stat().st_size for file in RESULTS.rglob("*") if file.is_file())
    if total > MOST_BYTES:
        yield f"results/ has {total:,} bytes, more than {MOST_BYTES:,}: run heedful study pack"


def write_all(pages_only: bool) -> None:
    if not pages_only:
        for study in studies():
            write_study_report(study)
    for page in PAGES:
        page.write_text(rebuilt(page), encoding="utf-8")
    for figure in figures():
        if figure.outdated:
            figure.write()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="Write what differs.")
    parser.add_argument("--pages", action="store_true", help="Leave the reports of the studies out.")
    options = parser.parse_args()
    if options.write:
        write_all(options.pages)
        return
    problems = [*(() if options.pages else changed_reports()), *changed_pages(), *size_problem()]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        raise SystemExit(f"differences: {len(problems)}; python benchmarks/reproduce.py --write updates them")
    print(f"{len(studies())} reports, the tables and the figures are what the ledgers say")


if __name__ == "__main__":
    main()
