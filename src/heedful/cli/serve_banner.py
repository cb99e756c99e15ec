"""What `heedful serve` prints when it accepts requests."""

import json
import shlex
from collections.abc import Sequence

from heedful.cli.serving import ServeOptions
from heedful.control import run_sync
from heedful.models.chat import UNNAMED
from heedful.rollout.case import EMBEDDED
from heedful.serve.key_file import unserved_rights
from heedful.serve.served_policies import ServedPolicy
from heedful.serve.service import Service
from heedful.types import Traits

PASSED_THROUGH = (
    "the upstream returns no log-probs, so all requests pass through without memory; a --policy from a study "
    "with another signal can be served"
)


def banner(service: Service, options: ServeOptions, *, new_store: bool) -> list[str]:
    """What is served, and what is odd about it; `new_store`: the store was made for this server."""
    policies = service.shelf.policies
    usable = all(policy.usable for policy in policies)
    lines = _served_lines(policies, options) if usable else [PASSED_THROUGH]
    if new_store:
        lines.append(f"there was no store {service.store.location}: a new, empty one was made there")
    if usable and not options.policies:
        lines += _empty_banks(service, options)
    lines += unserved_rights(
        service.callers.keys or (),
        policies={policy.name for policy in policies},
        banks={bank for policy in policies for bank in policy.banks},
    )
    if options.keys is None:
        lines.append("no --keys: anybody on this machine may call, nobody else can")
    return lines


def served_at(policies: Sequence[ServedPolicy], url: str) -> str:
    """The URL of the server, and the models behind it."""
    behind = dict.fromkeys(_model_behind(policy.controller.model.traits) for policy in policies)
    return f"serving {url} in front of {', '.join(behind)}"


def trial_call(policies: Sequence[ServedPolicy], options: ServeOptions, url: str) -> str:
    """A command that tries the server."""
    traits = policies[0].controller.model.traits
    model = "any" if _is_embedded(traits) else _named(traits) or "any"
    message = {"role": "user", "content": "What is 2 + 2?"}
    body = shlex.quote(json.dumps({"model": model, "messages": [message]}, ensure_ascii=False))
    key = ' -H "Authorization: Bearer $KEY"' if options.keys else ""
    return f"try: curl {url}/chat/completions{key} -H 'Content-Type: application/json' -d {body}"


def _is_embedded(traits: Traits) -> bool:
    return traits.endpoint == EMBEDDED


def _named(traits: Traits) -> str:
    """The model's name; empty if nobody named one and the endpoint chooses."""
    return "" if traits.name == UNNAMED else traits.name


def _model_behind(traits: Traits) -> str:
    if _is_embedded(traits):
        return f"the embedded model {traits.name}"
    return f"{traits.name} at {traits.endpoint}" if _named(traits) else traits.endpoint


def _served_lines(policies: Sequence[ServedPolicy], options: ServeOptions) -> list[str]:
    """Who decides, and whose answers are served."""
    if options.policies:
        lines = [
            f"policies: {', '.join(dict.fromkeys(policy.name for policy in policies))}",
            "a policy file has its own copy of its banks: export it again to change them",
        ]
    else:
        banks = ", ".join(bank for policy in policies for bank in policy.banks)
        lines = [f"no --policy: a cautious shipped prior decides, with {banks} of the store as memory"]
    if options.rollout is not None:
        lines.append(
            "shadow: clients get the first answers, and what the policy would do is recorded"
            if options.rollout.mode == "shadow"
            else f"canary: {options.rollout.share:.0%} get the policy's answers, others first ones"
        )
    if options.explore:
        lines.append(
            f"explore: for {100 * options.explore:g}% of answers a fair coin decides whether a memory answer "
            "may be used"
        )
    if options.harm_limit is not None:
        lines.append(f"promoted: the shadow decisions keep the harm within {options.harm_limit:.2%}")
    return lines


def _empty_banks(service: Service, options: ServeOptions) -> list[str]:
    """The served banks of the store that have no entries, and how to fill them."""
    sizes = run_sync(service.store.banks())
    store = "" if options.store is None else f" --store {shlex.quote(options.store)}"
    return [
        f"{bank} has no entries yet: heedful bank import FILE --bank {bank}{store} fills it"
        for policy in service.shelf.policies
        for bank in policy.banks
        if not sizes.get(bank)
    ]
