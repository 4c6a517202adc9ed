import time


class Clock:
    def __init__(self):
        self.now = 0

    def tick(self, ticks):
        time.sleep(0.02)
        self.now += ticks
        return self.now

    def late(self, since):
        return self.now - since > 5
