"""Odd bodies: `benchmarks/fuzz.py` sends many more."""

from pathlib import Path

from benchmarks.fuzz import fuzz, upstream_script

from tests.faulty import FaultyServer
from tests.serve.serving import make_service, serving


def test_no_body_causes_an_error_of_the_server(tmp_path: Path) -> None:
    with FaultyServer(upstream_script) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        result = fuzz(client, 400, seed=7)
    assert result["faults"] == []
    assert set(result["statuses"]) == {200, 400, 404}
    assert result["controlled"] > 50
