import sqlite3
from pathlib import Path

FILE = Path("app.db")
LEVELS = Path("levels.d")


def make():
    with sqlite3.connect(FILE) as database:
        database.execute("create table level (number int)")
        database.execute("insert into level values (?)", (2 + 1,))
    LEVELS.mkdir()
    (LEVELS / "high").touch()


if not FILE.exists():
    make()


def level():
    [(number,)] = sqlite3.connect(FILE).execute("select number from level")
    return number * 2
