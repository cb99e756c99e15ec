"""Every error that heedful raises deliberately.

HeedfulError                 exit 1, http 500
├── UsageError               exit 2, http 400   the request is invalid
│   ├── PolicyError                             the model, sources or guards do not support the policy
│   └── MalformedError                          a file has unreadable lines
├── MissingError             exit 3, http 503   a dependency, a key or weights are missing
├── LockError                exit 4, http 409   something changed after it was locked
│   └── LeakError                               a bank or both sides hold a question that is asked
├── ModelError               exit 1, http 502   the model's endpoint failed
│   ├── RequestError                            it rejects the request's content (400, 422)
│   ├── LogprobError                            its log-probs are missing or invalid
│   └── SignalError                             its reply to a confidence question is unreadable
├── WorkersError             exit 1, http 502   no worker can decode, or one serves another model
├── WorldError               exit 1, http 500   an agent's environment failed
└── StoreError               exit 1, http 503   the memory store failed
"""


class HeedfulError(Exception):
    """An error that the user can understand and act on."""

    exit_code = 1
    http_status = 500


class UsageError(HeedfulError):
    """The request is invalid."""

    exit_code = 2
    http_status = 400


class PolicyError(UsageError):
    """The policy needs something that the model, the sources or the guards do not provide."""


class MalformedError(UsageError):
    """A file has unreadable lines; `lines` pairs each line number with its problem."""

    def __init__(self, message: str, lines: tuple[tuple[int, str], ...] = ()) -> None:
        super().__init__(message)
        self.lines = lines


class MissingError(HeedfulError):
    """A dependency, a key or model weights are missing."""

    exit_code = 3
    http_status = 503


class LockError(HeedfulError):
    """Something changed after it was locked."""

    exit_code = 4
    http_status = 409


class LeakError(LockError):
    """A bank holds a question that the study asks, or both sides of a study hold one."""


class ModelError(HeedfulError):
    """The model's endpoint failed or sent an unreadable reply; it may ask for `wait` seconds of rest."""

    http_status = 502

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class RequestError(ModelError):
    """An endpoint rejects the content of a request: an unknown parameter, or a prompt that is too long."""


class LogprobError(ModelError):
    """An endpoint's log-probs are missing or invalid."""


class SignalError(ModelError):
    """A model's reply to a question about its confidence cannot be read."""


class WorkersError(HeedfulError):
    """No worker of a recording can decode, or one of them serves another model."""

    http_status = 502


class StoreError(HeedfulError):
    """The memory store failed."""

    http_status = 503


class WorldError(HeedfulError):
    """An agent's environment failed or stopped answering."""
