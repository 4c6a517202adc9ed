# Enumerations with methods, computed members and missing values.
import enum


class Level(enum.IntEnum):
    LOW = enum.auto()
    HIGH = enum.auto()

    @classmethod
    def _missing_(cls, value):
        return cls.HIGH if value > 2 else None

    @property
    def opposite(self):
        return Level(3 - self)

    def louder(self):
        return self.value + 1


class Planet(enum.Enum):
    EARTH = (4, 2)

    def __init__(self, mass, radius):
        self.density = mass // radius
