from subject.core import COMMANDS, Settings, Shape, command, reset, withdraw


def test_settings():
    Settings().level = 2
    assert Settings().level == 2
    reset()


def test_command():
    @command("part")
    def part():
        return "goodbye"

    assert COMMANDS["part"] is part
    withdraw("part")


def test_subclass():
    class Triangle(Shape, sides=3):
        pass

    assert "Triangle" in Shape.kinds
    Triangle.drop()


def test_settings_are_fresh():
    assert Settings().level == 1


def test_commands():
    assert {name: function() for name, function in COMMANDS.items()} == {"greet": "hello"}


def test_kinds():
    assert Shape.kinds == {"Square": 5}
