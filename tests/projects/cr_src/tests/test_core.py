import unittest

from calc.core import double


class Doubling(unittest.TestCase):
    def test_double(self):
        self.assertEqual(double(3), 6)


if __name__ == "__main__":
    unittest.main()
