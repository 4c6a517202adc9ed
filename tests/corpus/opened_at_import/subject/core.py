import sqlite3

DATABASE = sqlite3.connect("app.db")
DATABASE.execute("create table if not exists user (name text)")
DATABASE.commit()
LOG = open("app.log", "a+")


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
