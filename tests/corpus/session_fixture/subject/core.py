class Store:
    def __init__(self):
        self.rows = []

    def open(self, size):
        self.rows = [index * 2 for index in range(size)]
        return self

    def close(self):
        closed = len(self.rows)
        self.rows = None
        return closed

    def last(self):
        return self.rows[-1]
