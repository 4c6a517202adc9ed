from subject.inner.deep import half


def quarter(number):
    return half(half(number))


def third(number):
    return number // 3
