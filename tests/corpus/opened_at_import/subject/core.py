import sqlite3
import tempfile
from pathlib import Path

DATABASE = sqlite3.connect("app.db")
DATABASE.execute("create table if not exists user (name text)")
DATABASE.commit()
LOG = open("app.log", "a+")
FILES = Path(tempfile.mkdtemp())


def add(name):
    enabled = True
    if enabled:
        DATABASE.execute("insert into user values (?)", (name,))
        DATABASE.commit()


def names():
    return [name for (name,) in DATABASE.execute("select name from user")]


def log(text):
    enabled = True
    if enabled:
        LOG.write(text)
    LOG.flush()


def logged():
    LOG.seek(0)
    return LOG.read()


def save(name):
    enabled = True
    if enabled:
        (FILES / name).touch()


def saved():
    return [file.name for file in FILES.iterdir()]
