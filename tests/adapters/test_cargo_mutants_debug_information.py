"""When cargo builds with debug information, and when without."""

from pathlib import Path

import pytest
from msp_bridge.adapters.cargo_mutants.debug_information import without
from support.projects import copied


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return copied("rust_stand_in", tmp_path)


NO_DEBUG_INFORMATION = {"CARGO_PROFILE_DEV_DEBUG": "0"}


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("README.md", "A backtrace.", NO_DEBUG_INFORMATION),
        ("Cargo.toml", "[profile.dev]\nopt-level = 1", NO_DEBUG_INFORMATION),
        ("Cargo.toml", "[profile.dev]\ndebug = 1", {}),
        ("Cargo.toml", "[profile.dev.package.stock]\ndebug = 2", {}),
        (".cargo/config.toml", "[profile.mutants]\ndebug = 2", {}),
        ("../config.toml", "[profile.test]\ndebug = true", {}),
        ("stock/src/lib.rs", "use std::backtrace::Backtrace;", {}),
        ("stock/tests/prints.rs", 'env("RUST_BACKTRACE", "1")', {}),
    ],
)
def test_builds_have_debug_information_only_where_it_is_asked_for_or_looked_at(
    root: Path, file: str, text: str, expected: dict[str, str]
) -> None:
    (root / file).parent.mkdir(exist_ok=True)
    with (root / file).open("a") as opened:
        opened.write(f"\n{text}\n")
    assert without(root, [root.parent / "config.toml"]) == expected


def test_the_users_own_variable_says_how_much_debug_information_there_is(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGO_PROFILE_TEST_DEBUG", "line-tables-only")
    assert without(root, []) == {}
