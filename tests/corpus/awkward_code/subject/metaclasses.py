# Metaclasses, __init_subclass__, __set_name__, descriptors.
class Registry(type):
    names = []

    def __new__(mcs, name, bases, namespace):
        namespace["label"] = name.lower() + "!"
        made = super().__new__(mcs, name, bases, namespace)
        mcs.names.append(name)
        return made

    def __len__(cls):
        return len(cls.label) - 1


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner):
        return getattr(instance, self.name)

    def __set__(self, instance, value):
        if value < 0:
            raise ValueError(value)
        setattr(instance, self.name, value)


class Thing(metaclass=Registry):
    size = Positive()

    def __init_subclass__(cls, factor=2):
        cls.factor = factor * 2


class Big(Thing):
    pass
