# super() without arguments, __class__, and properties.
class Base:
    def __init__(self, number):
        self.number = number + 1

    def value(self):
        return self.number * 2

    @property
    def half(self):
        return self.number / 2


class Child(Base):
    def __init__(self, number):
        super().__init__(number - 1)

    def value(self):
        return super().value() + 1

    def name(self):
        return __class__.__name__

    @classmethod
    def made(cls, number):
        return cls(number + 2)

    @staticmethod
    def double(number):
        return number + number
