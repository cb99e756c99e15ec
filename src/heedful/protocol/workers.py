"""The workers that record a study: many endpoints, processes of this machine, or actors of a Ray cluster."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from heedful.errors import UsageError
from heedful.models.embedded import usable_cores
from heedful.models.fleet import Fleet, Worker
from heedful.models.process import ProcessModel
from heedful.models.ray_actor import RayModel, connect
from heedful.models.schemes import ModelOptions, make_model
from heedful.ports import Model
from heedful.protocol.same_model import SameModel
from heedful.protocol.study import ModelSettings, read_weight
from heedful.protocol.study_model import model_options, study_model

FORMS = "a number of processes, URLs with optional weights (http://a:8000/v1,http://b:8000/v1*2), or ray://HOST:10001"
RAY = "ray://"
HTTP = ("http://", "https://")
PROCESSES_PER_CORE = 8
"""More processes than this only fill the memory."""


def recording_model(settings: ModelSettings, workers: str | None) -> Model:
    """The study's model, or a fleet of workers that serve it; `workers` has one of the `FORMS`."""
    if workers is None and not settings.urls:
        return study_model(settings)
    own = study_model(settings)
    if workers is None:
        made = _endpoints(settings, settings.urls, "[model] urls")
    else:
        made = _workers(settings, own, workers.strip())
    return Fleet(workers=made, identity=own.traits, check=SameModel(_reference(own, made)))


def _workers(settings: ModelSettings, own: Model, given: str) -> list[Worker]:
    if given.startswith(RAY):
        return _actors(settings, own, *read_weight(given))
    if given.startswith(HTTP):
        if not settings.url.startswith(HTTP):
            raise UsageError(
                "the study's model is not an endpoint, so URLs in --workers would serve another model: set "
                "[model] url in the study file, or give a number of processes to --workers"
            )
        return _endpoints(settings, given.split(","), "--workers")
    if not given.isdecimal() or int(given) < 1:
        raise UsageError(f"--workers is {given!r}; give {FORMS}")
    if settings.url.startswith("http"):
        raise UsageError(
            f"the study's model is the endpoint {settings.url}, which processes of this machine do not make "
            "faster: set [model] slots, or give the URLs of several endpoints to --workers"
        )
    most = PROCESSES_PER_CORE * usable_cores()
    if int(given) > most:
        raise UsageError(
            f"--workers is {given}, but this machine has {usable_cores()} cores and each process loads the "
            f"model once more: give at most {most}"
        )
    options = _own_options(settings)
    return [
        Worker(
            name=f"process {number}",
            model=ProcessModel(partial(make_model, options), own.traits),
            capacity=settings.slots,
        )
        for number in range(1, int(given) + 1)
    ]


def _endpoints(settings: ModelSettings, urls: Sequence[str], named: str) -> list[Worker]:
    """One worker per URL; its weight multiplies the study's slots. Errors say where the URLs are named."""
    urls = [url.strip() for url in urls]
    if bad := [url for url in urls if not url.startswith(HTTP)]:
        raise UsageError(f"{named} has {bad[0]!r} where a URL should be, such as http://a:8000/v1")
    workers = {}
    for url, weight in map(read_weight, urls):
        slots = settings.slots * weight
        options = replace(model_options(settings), url=url, slots=slots, retries=0)
        model = make_model(options)
        if model.traits.endpoint in workers:
            raise UsageError(f"{named} has {model.traits.endpoint} twice; give it once, as {url}*2")
        workers[model.traits.endpoint] = Worker(name=model.traits.endpoint, model=model, capacity=slots)
    return list(workers.values())


def _actors(settings: ModelSettings, own: Model, address: str, per_node: int) -> list[Worker]:
    """`per_node` actors for each node; an endpoint's URL is used as each node sees it."""
    nodes = connect(address)
    options = _own_options(settings)
    cpus = 0.0 if settings.url.startswith("http") else float(options.threads or 1)
    return [
        Worker(
            name=f"Ray actor {number}",
            model=RayModel(partial(make_model, options), own.traits, capacity=settings.slots, cpus=cpus),
            capacity=settings.slots,
        )
        for number in range(1, nodes * per_node + 1)
    ]


def _own_options(settings: ModelSettings) -> ModelOptions:
    """The study's model as a worker makes it: one thread per engine, and the fleet repeats requests."""
    return replace(model_options(settings), threads=settings.threads or 1, retries=0)


def _reference(own: Model, workers: Sequence[Worker]) -> Model | None:
    """The study's own endpoint, if it is not one of the workers."""
    endpoints = {worker.model.traits.endpoint for worker in workers}
    return None if own.traits.endpoint in endpoints else own
