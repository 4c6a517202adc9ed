import sqlite3


def connect():
    connection = sqlite3.connect("shop.db")
    connection.execute("create table if not exists items (name text primary key, price integer)")
    return connection


def add(connection, name, price):
    connection.execute("insert into items values (?, ?)", (name, price))
    connection.commit()


def total(connection):
    return sum(price for (price,) in connection.execute("select price from items"))


def clear(connection):
    connection.execute("delete from items")
    connection.commit()
