"""Extra headers of requests."""

import pytest

from heedful import MissingError, UsageError
from heedful.models.headers import filled_headers, read_headers


def test_headers_are_read_from_options_and_secrets_from_the_environment() -> None:
    headers = read_headers(["X-Team: blue", "X-Key:$KEY"])
    assert headers == {"X-Team": "blue", "X-Key": "$KEY"}
    assert filled_headers(headers, {"KEY": " s3cret\n"}) == {"X-Team": "blue", "X-Key": "s3cret"}


def test_a_header_that_cannot_be_sent_is_refused_without_its_value() -> None:
    with pytest.raises(UsageError, match="'X-Team' has no value"):
        read_headers(["X-Team"])
    with pytest.raises(UsageError, match="invalid name or value") as caught:
        filled_headers({"X Team": "s3cret"}, {})
    assert "s3cret" not in str(caught.value)
    with pytest.raises(UsageError, match="invalid name or value"):
        filled_headers({"X-Team": "two\nlines"}, {})
    with pytest.raises(MissingError, match="environment variable KEY"):
        filled_headers({"X-Key": "$KEY"}, {})
