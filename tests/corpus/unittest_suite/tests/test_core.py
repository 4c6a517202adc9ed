import unittest

from subject.core import grade, mean


class TestGrade(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mean = mean([1, 3])

    def test_mean(self):
        self.assertEqual(self.mean, 2)

    def test_grades(self):
        for points, wanted in ((95, 1), (90, 1), (60, 2), (10, 3)):
            with self.subTest(points=points):
                self.assertEqual(grade(points), wanted)

    @unittest.expectedFailure
    def test_wrong(self):
        self.assertEqual(grade(49), 2)
