def grade(points):
    if points >= 90:
        return 1
    if points >= 50:
        return 2
    return 3


def mean(numbers):
    return sum(numbers) / len(numbers)
