import ctypes
import os


def leave(code):
    if code > 0:
        os._exit(code)


def poke(flag):
    if not flag:
        return
    ctypes.string_at(0)
