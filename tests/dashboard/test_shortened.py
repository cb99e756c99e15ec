from heedful import Message
from heedful.dashboard.shortened import MOST_SHOWN, newest_turns, shortened


def test_only_a_long_text_is_cut_and_says_how_much_is_missing() -> None:
    assert shortened("a" * MOST_SHOWN) == "a" * MOST_SHOWN
    assert shortened("a" * (MOST_SHOWN + 1_000)) == "a" * MOST_SHOWN + "… [1,000 more characters]"


def test_the_newest_turns_fit_and_one_is_always_left() -> None:
    short, half, long = (Message(role="user", content="a" * n) for n in (10, MOST_SHOWN // 2, MOST_SHOWN + 1))
    assert newest_turns([short, half]) == [short, half]
    assert newest_turns([long, short, half]) == [short, half]
    assert newest_turns([short, long]) == [long]
    assert newest_turns([]) == []
