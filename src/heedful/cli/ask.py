"""`heedful ask`: answer a question, or a file of them, with the control loop."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.model_options import read_extra
from heedful.cli.options import (
    Explore,
    Extra,
    Headers,
    Json,
    ModelName,
    Patience,
    Scope,
    Store,
    Threads,
    Url,
    Weights,
    refuse_idle,
    refuse_idle_model_options,
)
from heedful.cli.output import print_json, result, say
from heedful.cli.policy import Arm, Combine
from heedful.errors import ModelError, UsageError
from heedful.types import DEFAULT_RECALL, DEFAULT_THRESHOLD, OWN_ROWS, Outcome, Placement

if TYPE_CHECKING:
    from heedful.control import Controller

DECIDED = (
    *("bank", "combine", "arm", "signal", "threshold", "margin", "placement", "recall", "similarity"),
    *("limit", "instructions", "max_tokens", "logprobs", "header", "extra"),
)
"""Options that a lock decides."""
RECALL = ("combine", "placement", "recall", "similarity", "limit")
"""Options about the use of banks."""
SLOTS = 4
"""Number of concurrent requests to a model."""


def ask(
    context: typer.Context,
    question: Annotated[str, typer.Argument(help="The question; leave it out with --file.")] = "",
    file: Annotated[
        Path | None, typer.Option(help="Answer the questions of this JSONL file instead of one question.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="With --file: add the answers to this file, and skip those it has."),
    ] = None,
    at_once: Annotated[int, typer.Option(min=1, help="With --file: number of questions at a time.")] = 4,
    study: Annotated[
        Path | None, typer.Option(help="Folder of a locked study: answer with its locked policy.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="A bundle from `heedful study export`: answer with its policy.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse to answer if anything changed since the lock.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(envvar="HEEDFUL_DATA", help="Folder of the benchmark data, for --study."),
    ] = None,
    bank: Annotated[
        list[str] | None,
        typer.Option("--bank", "-b", help="Name of a bank; may be repeated. [default: default]"),
    ] = None,
    combine: Annotated[
        Combine | None,
        typer.Option(
            help="With several banks: how their answers are put together [default: cascade].",
            show_default=False,
        ),
    ] = None,
    arm: Annotated[Arm, typer.Option(help="How memory is used.")] = "choose",
    signal: Annotated[
        str | None,
        typer.Option(
            help="How confidence is measured [default: mean, or agreement without log-probs].",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Consult memory below this confidence [default: that of the signal].", show_default=False
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="Accept a second answer that is surer by this much [default: 0; of value: the prior's].",
            show_default=False,
        ),
    ] = None,
    placement: Annotated[Placement, typer.Option(help="Where to put memory in the prompt.")] = "auto",
    recall: Annotated[
        str, typer.Option(help="Recall method: dense, bm25, bm25_rerank, or one from a plug-in.")
    ] = DEFAULT_RECALL,
    similarity: Annotated[
        float, typer.Option(help="Minimum cosine similarity of dense recall.")
    ] = DEFAULT_THRESHOLD,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries in a prompt.")] = 3,
    instructions: Annotated[str, typer.Option(help="The system message.")] = "Answer in a few words.",
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum length of an answer in tokens.")] = 64,
    logprobs: Annotated[
        bool, typer.Option(help="Request log-probs; agreement, ptrue and stated do not need them.")
    ] = True,
    scope: Scope = None,
    explore: Explore = 0.0,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Give the first answer, and record what the policy would do.")
    ] = False,
    canary: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Use the policy for this share of users only; the others get the first answer."
        ),
    ] = None,
    patience: Patience = 60.0,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Time limit in seconds for each call of an endpoint.")
    ] = 120.0,
    url: Url = None,
    model: ModelName = None,
    header: Headers = None,
    extra: Extra = "{}",
    weights: Weights = "smollm2-135m",
    threads: Threads = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Answer a question, or each question of a file; memory is consulted only when the model is unsure."""
    from heedful.cli.ask_file import read_tasks
    from heedful.cli.asking import (
        LockedOptions,
        PolicyOptions,
        RunOptions,
        locked_controller,
        open_bundle,
        open_journal,
        own_controller,
        rollout_of,
    )
    from heedful.cli.waiting import with_notice
    from heedful.models.headers import read_headers
    from heedful.models.schemes import ModelOptions
    from heedful.types import TaskTemplate

    refuse_unclear(context, question, file)
    scoped = scope_of(scope)
    if file is not None:
        read_tasks(file, TaskTemplate(), scoped)  # a bad file is found before a model is opened
    opened, journal = open_journal(store)
    run = RunOptions(
        patience=patience,
        explore=explore if journal is not None else 0.0,
        rollout=rollout_of(context, shadow, canary),
    )
    if study is not None or policy is not None:
        refuse_decided(context, "--study" if study is not None else "--policy")
        given = {name: value for name, value in context.params.items() if is_given(context, name)}
        locked = LockedOptions(
            study=study,
            bundle=policy,
            data=data,
            strict=strict,
            url=given.get("url"),
            model=given.get("model"),
            weights=given.get("weights"),
            threads=given.get("threads"),
        )
        controller = locked_controller(open_bundle(locked), journal, run)
    else:
        refuse_unlocked(context)
        refuse_useless(context, arm, recall, url)
        refuse_recall(context, bank or [], similarity)
        options = PolicyOptions(
            banks=tuple(bank or ["default"]),
            combine=combine,
            arm=arm,
            signal=signal,
            threshold=threshold,
            margin=margin,
            placement=placement,
            recall=recall,
            similarity=similarity,
            limit=limit,
            template=TaskTemplate(instructions=instructions, max_tokens=max_tokens),
        )
        named = ModelOptions(
            url=url or "",
            model=model or "",
            logprobs=logprobs,
            timeout=timeout,
            weights=weights,
            threads=threads,
            slots=max(SLOTS, at_once) if url else SLOTS,
            headers=read_headers(header or ()),
            extra=read_extra(extra),
        )
        controller = own_controller(options, named, opened, journal, run)
    if file is not None:
        _ask_file(controller, file, out, at_once, scoped, json)
        return
    task = controller.template.task(question, scope=scoped)
    limit_words = f" for at most {timeout:g} s (--timeout)" if url else ""
    notice = f"heedful: still waiting for {url or 'the embedded model'}{limit_words} …"
    outcome = asyncio.run(with_notice(controller.answer(task), notice))
    for fault in outcome.faults:
        say(f"heedful: survived a fault in {fault.stage}: {fault.error}")
    fields = summary(outcome, recorded=is_recorded(controller, outcome))
    if json:
        print_json(fields)
        return
    console = result()
    console.print(outcome.answer, markup=False, soft_wrap=True)
    console.print(_decision_line(outcome, fields["decision"]), style="dim", markup=False, soft_wrap=True)


def refuse_useless(context: typer.Context, arm: Arm, recall: str, url: str | None) -> None:
    """Refuse options that the arm, the recall method or the model ignores."""
    from heedful.memory.bank import WITHOUT_THRESHOLD

    refuse_idle_model_options(context, url)
    if arm in ("never", "always", "fixed-budget", "value"):
        refuse_idle(context, ("signal", "threshold"), f"with --arm {arm}, which ignores confidence")
    if arm not in ("choose", "value"):
        refuse_idle(context, ("margin",), f"with --arm {arm}, which has no margin")
    if arm in ("never", "retry"):
        refuse_idle(context, RECALL, f"with --arm {arm}, which uses no memory")
    if recall in WITHOUT_THRESHOLD:
        refuse_idle(context, ("similarity",), f"with --recall {recall}")


def refuse_recall(context: typer.Context, banks: Sequence[str], similarity: float) -> None:
    """Refuse a bank that is named twice, `--combine` without several, and no cosine similarity."""
    if twice := [name for name, count in Counter(banks).items() if count > 1]:
        raise UsageError(f"--bank {twice[0]} is given twice; name each bank once")
    if len(banks) < 2:
        refuse_idle(context, ("combine",), "with one bank")
    if abs(similarity) > 1:
        raise UsageError(f"--similarity is {similarity:g}, but a cosine similarity is between -1 and 1")


def _ask_file(
    controller: "Controller", file: Path, out: Path | None, at_once: int, scope: dict[str, str], json: bool
) -> None:
    from heedful.cli.ask_file import ask_all, read_tasks

    tasks = read_tasks(file, controller.template, scope)

    def fields(outcome: Outcome) -> dict[str, object]:
        return summary(outcome, recorded=is_recorded(controller, outcome))

    count = asyncio.run(ask_all(controller, tasks, out, at_once, fields))
    if json:
        print_json(
            {
                "questions": len(tasks),
                "answered": count.answered,
                "failed": count.failed,
                "known": count.known,
                "out": str(out),
            }
        )
    if count.failed:
        raise ModelError(
            f"{count.failed} of {len(tasks)} questions failed; run the same command again to ask them again"
        )


def refuse_unclear(context: typer.Context, question: str, file: Path | None) -> None:
    """Refuse a missing question, and options that contradict each other."""
    if file is None:
        if not question.strip():
            raise UsageError("the question is empty: give a question, or --file QUESTIONS.jsonl")
        if given := [f"--{name.replace('_', '-')}" for name in ("out", "at_once") if is_given(context, name)]:
            raise UsageError(f"{', '.join(given)} needs --file QUESTIONS.jsonl")
    elif question:
        raise UsageError("give either a question or --file, not both")
    elif context.params["out"] is not None and context.params["out"].resolve() == file.resolve():
        raise UsageError("--out is the file of the questions: give the answers a file of their own")
    elif context.params["json"] and context.params["out"] is None:
        raise UsageError("--file prints JSON lines already; --json needs --out ANSWERS.jsonl")


def is_given(context: typer.Context, name: str) -> bool:
    """Whether an option is on the command line, not a default or an environment variable."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_decided(context: typer.Context, lock: str) -> None:
    """Refuse options that the lock decides: they would have no effect."""
    if context.params["study"] is not None and context.params["policy"] is not None:
        raise UsageError("give either --study or --policy, not both")
    if given := [f"--{name.replace('_', '-')}" for name in DECIDED if is_given(context, name)]:
        raise UsageError(f"{lock} decides {', '.join(given)}; leave out one or the other")


def refuse_unlocked(context: typer.Context) -> None:
    """Refuse options that apply to a lock only."""
    if given := [f"--{name}" for name in ("strict", "data") if is_given(context, name)]:
        raise UsageError(f"{', '.join(given)} needs --study or --policy")


def scope_of(pairs: list[str] | None) -> dict[str, str]:
    """The scope of the task."""
    from heedful.memory.entries import read_scope

    try:
        return read_scope(pairs or ())
    except ValueError as error:
        raise UsageError(str(error)) from error


def is_recorded(controller: "Controller", outcome: Outcome) -> bool:
    """Whether the decision is in the store."""
    return controller.journal is not None and not any(fault.stage == "journal" for fault in outcome.faults)


def summary(outcome: Outcome, *, recorded: bool) -> dict[str, object]:
    """The stable fields of an answer; a decision that is not recorded is not named."""
    verdict = outcome.verdict
    return {
        "answer": outcome.answer,
        "route": outcome.route.choice,
        "verdict": None if verdict is None else verdict.choice,
        "reason": outcome.route.reason if verdict is None else verdict.reason,
        "confidence": outcome.confidence,
        "calls": outcome.calls,
        "decision": outcome.decision if recorded else None,
    }


def _decision_line(outcome: Outcome, decision: object) -> str:
    confidence = "unknown" if outcome.confidence is None else f"{outcome.confidence:.2f}"
    value = outcome.policy.value
    name = "confidence" if value is None else "chance of being right"
    line = f"{outcome.route.choice} ({outcome.route.reason}, {name} {confidence})"
    if outcome.verdict is not None:
        line += f" → {outcome.verdict.choice} ({outcome.verdict.reason})"
    calls = "1 call" if outcome.calls == 1 else f"{outcome.calls} calls"
    if value is not None and value.trees.origin != OWN_ROWS:
        calls += f" by the prior {value.trees.origin}"
    record = f"heedful why {decision}" if decision else "not recorded"
    return f"{line}, {calls}; {record}"
