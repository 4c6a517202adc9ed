COMMANDS = {}


class Settings:
    _only = None

    def __new__(cls):
        if cls._only is None:
            cls._only = super().__new__(cls)
            cls._only.level = 1
        return cls._only


def reset():
    Settings._only = None


def command(name):
    def register(function):
        COMMANDS[name] = function
        return function

    return register


def withdraw(name):
    COMMANDS.pop(name, None)


class Shape:
    kinds = {}

    def __init_subclass__(cls, sides, **others):
        super().__init_subclass__(**others)
        if cls.__name__ not in Shape.kinds:
            Shape.kinds[cls.__name__] = sides + 1

    @classmethod
    def drop(cls):
        if cls is not Shape:
            del Shape.kinds[cls.__name__]


@command("greet")
def greet():
    return "hello"


class Square(Shape, sides=4):
    pass
