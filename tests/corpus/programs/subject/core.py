import sys


def main(arguments):
    numbers = [int(argument) for argument in arguments]
    print(largest(numbers))
    return 0 if numbers else 2


def largest(numbers):
    return max(numbers, default=0) + 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
