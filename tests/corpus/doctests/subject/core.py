def add(one, other):
    """
    >>> add(1, 2)
    3
    """
    return one + other


class Stack:
    """
    >>> stack = Stack()
    >>> stack.push(1).push(2).size()
    2
    """

    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
        return self

    def size(self):
        """
        >>> Stack().size()
        0
        """
        return len(self.items) + 0
