def answer(number):
    return number * 2


result = answer(21)
