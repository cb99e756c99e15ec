"""The check that every worker of a fleet serves the same model."""

import asyncio

from heedful.errors import ModelError, WorkersError
from heedful.models.fleet import Worker
from heedful.ports import Model
from heedful.protocol.endpoint_probe import PROBE, EndpointProbe, probe


class SameModel:
    """Asks each worker the question that a lock asks an endpoint, and compares the replies.

    Weights that a worker loads itself are known by their digest: there, an answer is enough.
    """

    def __init__(self, reference: Model | None = None) -> None:
        """Replies must equal those of the reference, or of the first worker that answers."""
        self._reference = reference
        self._name = ""
        self._expected: EndpointProbe | None = None
        self._locks: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}

    async def __call__(self, worker: Worker) -> None:
        reply = await probe(worker.model)
        if reply is None:
            await worker.model.decode(PROBE)
            return
        async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            await self._expect(worker, reply)
        if self._expected is not None and not self._expected.same(reply):
            raise WorkersError(
                f"{worker.name} serves another model than {self._name}: to the same question it replies "
                f"{reply.text!r} (mean log-prob {reply.mean:.2f}) and not {self._expected.text!r} "
                f"({self._expected.mean:.2f}); remove one of them from the workers"
            )

    async def _expect(self, worker: Worker, reply: EndpointProbe) -> None:
        if self._expected is not None:
            return
        if self._reference is not None:
            try:
                self._expected = await probe(self._reference)
                self._name = self._reference.traits.endpoint
                return
            except ModelError:  # the study's own endpoint may be down: the workers do not need it
                self._reference = None
        self._expected, self._name = reply, worker.name
