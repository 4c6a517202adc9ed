"""Reached in another process only."""


def main():
    print("result", 20 + 1)
