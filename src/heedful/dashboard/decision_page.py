"""One decision: both answers side by side, and why one of them was given."""

from collections.abc import Sequence

from heedful.dashboard.decision_steps import decision_steps, pairs
from heedful.dashboard.decisions_page import feedback_words
from heedful.dashboard.difference import marked_difference
from heedful.dashboard.layout import link, moment, note, section, table
from heedful.dashboard.markup import Markup, element, join
from heedful.dashboard.shortened import MOST_SHOWN, newest_turns, shortened
from heedful.dashboard.view import WHERE_IDS_ARE, DashboardView, Page, PageRequest
from heedful.errors import UsageError
from heedful.explain import EntryTexts, cost_words, entry_texts
from heedful.records import Decision, Feedback, PassRecord
from heedful.sources.memory import memory_settings


async def decision_page(view: DashboardView, request: PageRequest) -> Page:
    decision = await _find(view, request.path["decision"])
    texts = await entry_texts(decision, view.store)
    feedback = (await view.feedback.of([decision])).get(decision.id, ())
    question = decision.task.question or decision.task.search_text
    body = join(
        [
            element("p", element("b", "Question: "), shortened(question), class_="question text"),
            element("p", element("b", "Answer: "), shortened(decision.answer), class_="headline text"),
            _shortening(decision, texts),
            _conversation(decision),
            section("Answers", _answers(decision, feedback)),
            section("Recalled entries", _recalls(decision, texts)),
            section("Why", decision_steps(decision)),
            section("Feedback and cost", _outcome(decision, feedback)),
        ]
    )
    return Page(title=f"Decision {decision.id}", section="decisions", body=body)


async def _find(view: DashboardView, id: str) -> Decision:
    """The decision of an address; nobody who reads pages has asked at the command line."""
    try:
        return await view.journal.find(id)
    except UsageError as error:
        problem, at_the_command_line, _ = str(error).partition("; heedful ask prints")
        if not at_the_command_line:
            raise
        raise UsageError(f"{problem}; {WHERE_IDS_ARE}") from error


def _shortening(decision: Decision, texts: EntryTexts) -> Markup | None:
    """How to get the texts that the page shortens."""
    task = decision.task
    shown = [task.question or task.search_text, decision.answer, *texts.values()]
    shown += [text for record in decision.passes for text in (record.text, record.answer, record.error)]
    shown.append("".join(turn.content for turn in task.earlier))
    if max(map(len, shown)) <= MOST_SHOWN:
        return None
    command = element("code", f"heedful decisions show {decision.id} --json")
    sentence = f"This page shows {MOST_SHOWN:,} characters of a text at most; the whole record is printed by "
    return element("p", sentence, command, ".", class_="note")


def _conversation(decision: Decision) -> Markup | None:
    """The turns before the question, folded."""
    turns = decision.task.earlier
    if not turns:
        return None
    shown = newest_turns(turns)
    lines = [
        join([element("dt", turn.role), element("dd", shortened(turn.content), class_="text")])
        for turn in shown
    ]
    counted = "1 message" if len(turns) == 1 else f"{len(turns)} messages"
    counted += "" if len(shown) == len(turns) else f", the last {len(shown)} are shown"
    summary = element("summary", f"Conversation before the question: {counted}")
    return element("details", summary, element("dl", lines, class_="pairs"))


def _answers(decision: Decision, feedback: Sequence[Feedback]) -> Markup:
    """The first pass beside each second pass, with the differences marked."""
    grades = next((given.grades for given in feedback if given.kind == "answer"), ())
    first, others = decision.first, [candidate.record for candidate in decision.candidates]
    before, after = _said(first), [_said(record) for record in others]
    marked = [marked_difference(before, text) for text in after]
    cards = [
        _card(
            "First answer",
            first,
            marked[0][0] if marked else join([before]),
            decision.chosen is None,
            grades[:1],
        )
    ]
    for at, (record, (_, text)) in enumerate(zip(others, marked, strict=True)):
        name = "Second answer" if len(others) == 1 else f"Answer {at + 2}"
        cards.append(
            _card(f"{name}: {record.source}", record, text, decision.chosen == at, grades[at + 1 : at + 2])
        )
    highlighted = any("<mark>" in card for card in cards)
    explained = note("Highlighted words differ between the answers.") if highlighted else None
    return join([element("div", cards, class_="side-by-side"), explained])


def _card(title: str, record: PassRecord, text: Markup, given: bool, grade: Sequence[bool]) -> Markup:
    badges = [element("span", "given to the user", class_="badge") if given else None]
    badges += [
        element("span", "right" if right else "wrong", class_="badge gain" if right else "badge loss")
        for right in grade
    ]
    failed = shortened(f"failed: {record.error}")
    missing = {"nothing": "nothing recalled, so no call was made", "failed": failed}
    return element(
        "article",
        element("h3", title, badges),
        element("p", missing.get(record.status, text), class_="text"),
        element("small", f"read as “{shortened(record.answer)}”" if record.answer else "no answer was read"),
        class_="card given" if given else "card",
    )


def _said(record: PassRecord) -> str:
    """The text of a pass, or its tool calls."""
    return shortened(record.text or record.answer)


def _recalls(decision: Decision, texts: EntryTexts) -> Markup:
    rows = []
    for record in decision.passes:
        settings = memory_settings(decision.sources.get(record.source, {}))
        bank = "" if settings is None else settings.bank
        for recall in record.recalls:
            uses = link("/decisions", {"bank": bank, "entry": recall.entry})
            text = element("span", shortened(texts[recall]), class_="text")
            rows.append([text, element("a", recall.entry, href=uses), bank, f"{recall.score:.2f}"])
    head = ("Text as recalled", "Entry", "Bank", "Score")
    return table("Entries in the prompts", head, rows, numbers=(3,), empty="No entry was recalled.")


def _outcome(decision: Decision, feedback: Sequence[Feedback]) -> Markup:
    model = decision.model
    return pairs(
        [
            *((f"Feedback ({given.kind})", feedback_words(given)) for given in feedback),
            *([] if feedback else [("Feedback", "none")]),
            ("Cost", cost_words(decision)),
            *(("Scope", f"{name}={value}") for name, value in decision.task.scope.items()),
            ("Model", f"{model.name} ({model.endpoint})"),
            ("Policy", decision.policy_id),
            ("Time", moment(decision.at)),
        ]
    )
