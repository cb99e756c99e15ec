"""The overview of all studies: question, answer in one line, command."""

from collections.abc import Callable

from heedful.cli.output import counted
from published.agents import change
from published.cells import NOT_YET, Fields, best_always, calls_of, report, span, table

LEVEL = 0.05
Answer = Callable[[Fields], str]


def _verdict(arm: Fields) -> str:
    """A gain is shown if both the interval and the test separate it from 0."""
    delta, p = arm["delta"], arm["mcnemar_p"]
    if p >= LEVEL or delta["low"] <= 0 <= delta["high"]:
        return "no gain is shown"
    return "yes" if delta["low"] > 0 else "no, it loses"


def _gain(arm: Fields, policy: str = "") -> str:
    """Whether a policy gains over the model without memory, in words and numbers."""
    delta = arm["delta"]
    counts = f"{counted(arm['helps'], 'help')}, {counted(arm['hurts'], 'hurt')}, {calls_of(arm):.2f} calls"
    return f"{_verdict(arm)}: {policy}{span(delta)} points ({counts})"


def locked(found: Fields) -> str:
    """The locked policy, with the best memory in every prompt beside it."""
    arms = found["arms"]
    always = arms[best_always(arms)]
    return f"{_gain(arms['heedful'])}; the best memory in every prompt {span(always['delta'])}"


def valued(found: Fields) -> str:
    """The value policy, and the locked one with its harm limit."""
    certified = found["arms"]["heedful"]
    value = _gain(found["families"]["value"], "value policy ")
    return f"{value}; certified to hurt at most 2%: {_verdict(certified)}, {span(certified['delta'])}"


def fresh(found: Fields) -> str:
    """The value policy, and memory against compute."""
    if "matched" not in found:
        return valued(found)
    difference = found["matched"]["differences"]["memory-compute"]["delta"]
    shown = "" if difference["low"] > 0 else " (not shown)"
    return f"{valued(found)}; memory − compute at equal calls: {span(difference)}{shown}"


def carried(found: Fields) -> str:
    """The policy that the fit side preferred without a limit, what it competes with, and the prior."""
    arms, families = found["arms"], found["families"]
    parts = [_gain(arms["unlimited"], "the policy that the fit side preferred ")]
    parts.append(f"the best memory in every prompt {span(arms[best_always(arms)]['delta'])}")
    for label, name in (("prior alone", "prior"), ("value policy", "value")):
        parts.append(f"{label}: {_verdict(families[name])}, {span(families[name]['delta'])}")
    return "; ".join(parts)


def distilled(found: Fields) -> str:
    arms = found["arms"]
    always = f"in every prompt written {span(arms['always-rule']['delta'])}, distilled "
    return f"no advantage is shown: {always}{span(arms['always-built']['delta'])}"


def harmless(found: Fields) -> str:
    arms = found["arms"]
    hurts = f"{arms['heedful']['hurts']} answers instead of {arms[best_always(arms)]['hurts']}"
    return f"{_gain(arms['heedful'])}; it hurts {hurts} with memory in every prompt"


def played(found: Fields) -> str:
    """The policies of an agent study, and hints in every prompt, by score."""
    arms = {"threshold policy": "threshold", "value policy": "value", "hints in every prompt": "always"}
    return "; ".join(f"{label} {_episodes(found['arms'][name])}" for label, name in arms.items())


def _episodes(arm: Fields) -> str:
    return f"{change(arm['delta']['score'])}, {arm['helps']} / {arm['hurts']}"


STUDIES: dict[str, tuple[str, Answer]] = {
    "svamp-new": (
        "SVAMP, 160 rows never asked before: does the gain hold, and is it memory or compute?",
        fresh,
    ),
    "asdiv-new": ("the same on 600 new rows of ASDiv", fresh),
    "multiarith-new": (
        "the same on MultiArith, with worked exemplars; all of its rows were asked before",
        fresh,
    ),
    "openbookqa": ("do facts and solved questions help to answer OpenBookQA?", carried),
    "arc_easy": ("the same on ARC-Easy", carried),
    "arc_challenge": ("the same on ARC-Challenge", carried),
    "svamp-0.5b": ("does it carry over to a model of a third of the size, on SVAMP?", carried),
    "asdiv-0.5b": ("the same on ASDiv", carried),
    "svamp-value": ("do value policies gain on SVAMP? (known test side)", valued),
    "asdiv-value": ("the same on ASDiv", valued),
    "multiarith-value": ("the same on MultiArith", valued),
    "svamp": ("do thresholds on confidence gain on SVAMP, at no more than 2% hurts?", locked),
    "asdiv": ("the same on ASDiv", locked),
    "multiarith": ("the same on MultiArith", locked),
    "svamp-rules": ("are rules that the model distils itself better than rules written by hand?", distilled),
    "svamp-loop-before": ("written rules when unsure, before the closed loop", locked),
    "svamp-loop": ("the same after two rounds of retiring and replacing rules", locked),
    "textworld-twc": ("agents: do hints help in TextWorld-Express? (score, helps / hurts)", played),
    "scienceworld": ("the same in ScienceWorld", played),
    "webshop": ("the same in WebShop", played),
    "demo": ("`heedful demo`: questions about a made-up company, SmolLM2-135M", harmless),
}


def studies_table() -> str:
    """Every study; those without a report are still being recorded."""
    rows = []
    for study, (question, answer) in STUDIES.items():
        found = report(study)
        if found is None:
            rows.append((f"`{study}`", question, NOT_YET, f"`heedful study run studies/{study}.toml`"))
        else:
            command = f"`heedful {'agent' if answer is played else 'study'} report results/{study}`"
            rows.append((f"[`{study}`]({study}/report.md)", question, answer(found), command))
    return table(("study", "question", "answer", "command"), rows)
