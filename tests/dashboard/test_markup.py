from hypothesis import given
from hypothesis import strategies as st

from heedful.dashboard.markup import element, join


@given(st.text())
def test_no_text_can_add_an_element_or_leave_an_attribute(text: str) -> None:
    made = element("p", text, title=text)
    inside = made.removeprefix("<p ").removesuffix("</p>")
    assert inside.count("<") == 0
    assert inside.count(">") == 1
    assert made.count('"') == 2


def test_markup_is_kept_and_numbers_and_nothing_are_written_as_they_are() -> None:
    assert join([element("b", "a<b"), None, 3, ["&", element("br")]]) == "<b>a&lt;b</b>3&amp;<br>"


def test_attributes_are_named_as_in_html_and_left_out_if_unset() -> None:
    made = element("input", class_="x", aria_label="y", required=True, checked=False, value=None, width=0.5)
    assert made == '<input class="x" aria-label="y" required width="0.5">'
