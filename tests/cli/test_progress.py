"""Lines of progress elsewhere than on a terminal, with a clock that stands still unless it is moved."""

from heedful.cli.progress import EVERY_SECONDS, ProgressLines


class Watched:
    """Lines that were printed, and the clock they were printed by."""

    def __init__(self) -> None:
        self.now = 0.0
        self.printed: list[str] = []
        self.lines = ProgressLines(self.printed.append, lambda: self.now)

    def show(self, title: str, done: int, total: int) -> None:
        self.lines.show(title, done, total, lambda: f"{done} of {total}")


def test_quick_work_prints_its_start_and_its_end_only() -> None:
    watched = Watched()
    for done in range(41):
        watched.show("recording", done, 40)
    assert watched.printed == ["recording: 0 of 40", "recording: 40 of 40"]


def test_long_work_prints_a_line_every_30_seconds() -> None:
    watched = Watched()
    for done in range(7):
        watched.show("recording", done, 100)
        watched.now += EVERY_SECONDS / 2
    assert watched.printed == [f"recording: {done} of 100" for done in (0, 2, 4, 6)]


def test_a_step_that_takes_long_repeats_the_last_line_until_the_work_ends() -> None:
    watched = Watched()
    watched.show("recording", 3, 4)
    watched.lines.remind()
    watched.now += EVERY_SECONDS
    watched.lines.remind()
    watched.lines.remind()
    watched.show("recording", 4, 4)
    watched.now += EVERY_SECONDS
    watched.lines.remind()
    assert watched.printed == ["recording: 3 of 4", "recording: 3 of 4", "recording: 4 of 4"]


def test_every_title_has_lines_of_its_own_and_no_work_needs_one_line() -> None:
    watched = Watched()
    for title in ("without entry 1", "without entry 2"):
        for done in range(3):
            watched.show(title, done, 2)
    watched.show("nothing", 0, 0)
    assert watched.printed == [
        *("without entry 1: 0 of 2", "without entry 1: 2 of 2"),
        *("without entry 2: 0 of 2", "without entry 2: 2 of 2"),
        "nothing: 0 of 0",
    ]
