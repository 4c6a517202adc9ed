"""An edit of a Python file keeps all but what it replaces."""

import pytest

from msp_bridge.python_engine.programs.file_edit import FileEdit, PythonText, digest_of


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a = 1\nb = 2\n", b"a = 1\nb = \\\n3\n"),
        (b"a = 1\r\nb = 2\r\n", b"a = 1\r\nb = \\\r\n3\r\n"),
        (b"a = 1\r\nb = 2\n\n", b"a = 1\r\nb = \\\n3\n\n"),
        ("\ufeffa = 1\nb = 2".encode(), "\ufeffa = 1\nb = \\\n3".encode()),
        ("# coding: latin-1\n# é\nb = 2".encode("latin-1"), "# coding: latin-1\n# é\nb = \\\n3".encode("latin-1")),
        ("# 🧬\rb = 2\r".encode(), "# 🧬\rb = \\\n3\r".encode()),
    ],
)
def test_the_encoding_the_mark_and_the_line_ends_stay(data: bytes, expected: bytes) -> None:
    at = PythonText(data).normal.index("2")
    edit = FileEdit("m.py", digest_of(data), at, at + 1, "\\\n3")
    assert edit.applied(edit.text(data)) == expected


def test_another_version_of_the_file_is_refused() -> None:
    with pytest.raises(OSError, match=r"m\.py is not the version"):
        FileEdit("m.py", digest_of(b"a"), 0, 1, "b").text(b"c")
