from hypothesis import given
from hypothesis import strategies as st

from cronring.schema.digest import digest


def test_a_digest_is_the_same_for_ever():
    assert (
        digest("module x {\n}\n", b"# caf\xc3\xa9\n")
        == "212d6eaa70dee7269977c748f6c92851386eff0f62130598a11d431e4292f2a9"
    )


@given(st.text(max_size=20).filter(str.isprintable), st.binary(max_size=20), st.integers(0, 20))
def test_text_and_source_are_kept_apart(text: str, source: bytes, cut: int):
    whole = text.encode() + source
    moved_text, moved_source = whole[:cut], whole[cut:]
    try:
        moved = moved_text.decode()
    except UnicodeDecodeError:
        return
    same = (moved, moved_source) == (text, source)
    assert (digest(moved, moved_source) == digest(text, source)) == same
