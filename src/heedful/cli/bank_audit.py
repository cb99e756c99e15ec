"""`heedful bank audit`: every state change of a bank, with who made it, why and on which evidence."""

import asyncio
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from heedful.cli.options import BankName, Json, Store
from heedful.cli.output import print_json, result, say

if TYPE_CHECKING:
    from heedful.types import StateChange


def audit(bank: BankName = "default", store: Store = None, json: Json = False) -> None:
    """List every state change of a bank, oldest first: who, when, why and on which evidence."""
    from heedful.cli.resources import open_known_store, require_bank

    opened = open_known_store(store)
    require_bank(opened, bank)
    changes = asyncio.run(opened.audit(bank))
    if json:
        print_json({"bank": bank, "changes": [asdict(change) for change in changes]})
        return
    if not changes:
        say(f"no entry of bank {bank} has changed its state")
        return
    result().print("\n".join(map(_line, changes)), markup=False, soft_wrap=True)


def _line(change: "StateChange") -> str:
    when = f"{datetime.fromtimestamp(change.at):%Y-%m-%d %H:%M:%S}"
    line = f"{when} {change.entry}: {change.before} → {change.state} by {change.by or 'unknown'}"
    line += f": {change.reason or 'no reason given'}"
    if (grounds := change.grounds) is not None:
        subject = f"{grounds.group}, " if grounds.group else ""
        line += f" [{subject}{grounds.tasks} tasks, {grounds.helps} helps, {grounds.hurts} hurts]"
    return line
