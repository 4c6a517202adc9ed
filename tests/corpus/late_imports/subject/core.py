from importlib import import_module


def handler(name):
    return import_module("subject.views").HANDLERS[name]
