import os


class Pool:
    def __init__(self):
        self.process = os.getpid()
        self.items = [1, 2, 3]

    def first(self):
        if self.process != os.getpid():
            self.renew()
        return self.items[0]

    def renew(self):
        self.process = os.getpid()
        self.items = [1, 2]


POOL = Pool()
