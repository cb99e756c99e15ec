"""Every error heedful raises on purpose.

HeedfulError                 exit 1, http 500
├── UsageError               exit 2, http 400   the caller asked for something that cannot be
│   ├── PolicyError                             a policy the model or the sources cannot carry out
│   └── MalformedError                          a file with lines that cannot be read
├── MissingError             exit 3, http 503   a dependency, a key or weights are not there
├── LockError                exit 4, http 409   something moved after it was locked
│   └── LeakError                               a bank knows a question that it is judged by
├── ModelError               exit 1, http 502   the model's endpoint failed
│   ├── RequestError                            it refuses a request for what it asks (400, 422)
│   └── LogprobError                            its log-probs are absent or make no sense
└── StoreError               exit 1, http 500   the memory store failed
"""


class HeedfulError(Exception):
    """Something went wrong that a person can understand and act on."""

    exit_code = 1
    http_status = 500


class UsageError(HeedfulError):
    """The caller asked for something that cannot be."""

    exit_code = 2
    http_status = 400


class PolicyError(UsageError):
    """The policy needs something that the model or the sources cannot give."""


class MalformedError(UsageError):
    """A file holds lines that cannot be read; `lines` pairs each number with what is wrong."""

    def __init__(self, message: str, lines: tuple[tuple[int, str], ...] = ()) -> None:
        super().__init__(message)
        self.lines = lines


class MissingError(HeedfulError):
    """A dependency, a key or model weights are not there."""

    exit_code = 3
    http_status = 503


class LockError(HeedfulError):
    """Something moved after it was locked."""

    exit_code = 4
    http_status = 409


class LeakError(LockError):
    """A bank holds a question that the study asks."""


class ModelError(HeedfulError):
    """The model's endpoint failed or answered something unreadable."""

    http_status = 502


class RequestError(ModelError):
    """An endpoint refuses a request for what it asks: a parameter it does not know, a prompt too long."""


class LogprobError(ModelError):
    """An endpoint's log-probs are absent or make no sense."""


class StoreError(HeedfulError):
    """The memory store failed."""
