"""Numbers and policies in words, the same in every format."""

from collections.abc import Sequence
from math import inf

from heedful.protocol.fit_result import HarmCertificate
from heedful.stats.intervals import Interval
from heedful.types import OWN_ROWS, Policy, ValueRule, ValueTrees

MINUS = "\N{MINUS SIGN}"


def percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def points(value: float) -> str:
    """A difference of shares in percentage points, signed."""
    return signed(100 * value, 1)


def signed(value: float, digits: int = 0) -> str:
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", MINUS)


def plain(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-", MINUS)


def share(interval: Interval) -> str:
    """A share with its 95% interval: `69.3% [63.9, 74.2]`."""
    return f"{percent(interval.value)} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def change(interval: Interval) -> str:
    """A difference in points with its 95% interval: `+15.3 [+10.1, +20.5]`."""
    return f"{points(interval.value)} [{points(interval.low)}, {points(interval.high)}]"


def measured(interval: Interval, digits: int = 3) -> str:
    low, value, high = (plain(one, digits) for one in (interval.low, interval.value, interval.high))
    return f"{value} [{low}, {high}]"


def p_value(p: float) -> str:
    if p >= 0.001:
        return f"{p:.3f}" if p < 0.9995 else "1"
    digits, power = f"{p:.1e}".split("e")
    return f"{digits}e{int(power)}"


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def listed(names: tuple[str, ...]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def called(calls: float) -> str:
    """`1 call`, `1.94 calls`."""
    text = f"{calls:.2f}".rstrip("0").rstrip(".")
    return f"{text} call" if text == "1" else f"{text} calls"


def figure(value: float) -> str:
    """A threshold or margin, to four digits."""
    return f"{value:.4g}".replace("-", MINUS)


def policy_words(policy: Policy) -> str:
    """What a policy does, in sentences."""
    first = "without memory" if policy.first == "none" else f"with {policy.first} memory"
    if policy.value is not None:
        return _value_words(policy, policy.value, first)
    if not policy.sources or policy.threshold == -inf or policy.budget.passes == 0:
        return f"Answer {first}; consult nothing."
    unsure = (
        "always"
        if policy.threshold == inf
        else f"if the confidence ({policy.signal}) is below {figure(policy.threshold)},"
    )
    return f"Answer {first} first; {unsure} {_consulting(policy)}. {_accepting(policy)}"


def _value_words(policy: Policy, rule: ValueRule, first: str) -> str:
    margin = f" by more than {percent(rule.margin)}" if rule.margin else ""
    unit = "call" if rule.unit == "calls" else "1,000 tokens"
    return (
        f"Answer {first} first; ask {_listed_or(policy.sources)} while the expected gain in accuracy exceeds "
        f"{percent(rule.cost)} per {unit}{_estimated_by(rule.trees)}. The answer that is likeliest right is "
        f"taken if it passes the guards and is likelier right than the first{margin}; otherwise the first "
        "answer stands."
    )


def _estimated_by(trees: ValueTrees) -> str:
    """What the estimates come from, unless from the study's own rows alone."""
    if trees.origin != OWN_ROWS:
        return f" (by the prior {trees.origin})"
    return "" if trees.prior is None else f" (own rows and the prior {trees.prior.origin})"


def _listed_or(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def policy_brief(policy: Policy) -> str:
    """A policy in one line of a table."""
    if not policy.sources:
        return policy.first
    if policy.value is not None:
        return f"{policy.first} → value of {', '.join(policy.sources)}, cost {figure(policy.value.cost)}"
    joined = {"dual": " + ", "agree": " = ", "cascade": " → "}[policy.combine].join(policy.sources)
    margins = "" if policy.margins is None else ", margins " + _each(policy)
    return f"{policy.first} → {joined} if {policy.signal} < {figure(policy.threshold)}{margins}"


def _each(policy: Policy) -> str:
    return (
        "" if policy.margins is None else ", ".join(figure(policy.margins[name]) for name in policy.sources)
    )


def _consulting(policy: Policy) -> str:
    names = [
        "answer again without memory" if name == "none" else f"consult {name}" for name in policy.sources
    ]
    if len(names) == 1:
        return names[0]
    if policy.combine == "dual":
        return f"{listed(tuple(names))}, and take the surest accepted answer"
    if policy.combine == "agree":
        return f"{', then '.join(names)}, until two of them agree or can no longer agree"
    return f"{', then '.join(names)}, until an answer is accepted"


def _accepting(policy: Policy) -> str:
    tests = []
    if policy.guards:
        tests.append(f"it passes the guard{'s' * (len(policy.guards) > 1)} {listed(policy.guards)}")
    if policy.margins is not None:
        tests.append(_surer({name: policy.margins[name] for name in policy.sources}))
    if policy.combine == "agree":
        tests.append("another pass agrees with it against the first answer")
    if not tests:
        return "Any second answer is accepted."
    return f"A second answer is accepted if {listed(tuple(tests))}; otherwise the first answer stands."


def _surer(margins: dict[str, float]) -> str:
    if len(set(margins.values())) == 1:
        return f"is {_by(next(iter(margins.values())))}"
    origin = {name: "without memory" if name == "none" else f"from {name}" for name in margins}
    limits = tuple(f"({origin[name]}) {_by(margin)}" for name, margin in margins.items())
    return f"is {listed(limits)}"


def _by(margin: float) -> str:
    if margin == 0:
        return "at least as sure as the first"
    if margin > 0:
        return f"surer than the first by at least {figure(margin)}"
    return f"less sure than the first by at most {figure(-margin)}"


def times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")


def promise_name(certificate: HarmCertificate | None) -> str:
    """What a policy was chosen under."""
    no_loss = certificate is not None and certificate.promise == "no-loss"
    return "promise of no loss" if no_loss else "harm limit"


def promise_words(certificate: HarmCertificate) -> str:
    """What a policy is certified to do."""
    if certificate.limit is None:
        return "not to lose accuracy"
    return f"to hurt at most {percent(certificate.limit)} of answers"
