def joined(left, right):
    return left + "-" + right


def same(left, right):
    return left == right and len(left) == len(right)
