# Names that a class mangles.
class Account:
    __rate = 2

    def __init__(self, amount):
        self.__amount = amount

    def __fee(self, amount):
        return amount // 10 + self.__rate

    def withdraw(self, amount):
        self.__amount -= amount + self.__fee(amount)
        return self.__amount

    def __eq__(self, other):
        return self.__amount == other.__amount
