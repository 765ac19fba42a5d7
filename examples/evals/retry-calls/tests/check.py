import sys
import unittest

sys.path.insert(0, ".")
from retry import TryAgain, retry


class World:
    def __init__(self, *outcomes, chance=(1.0,) * 99, takes=0.0):
        self.outcomes, self.chance, self.takes = list(outcomes), list(chance), takes
        self.now, self.waits, self.calls = 100.0, [], 0

    def call(self):
        self.calls += 1
        self.now += self.takes
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def sleep(self, seconds):
        self.waits.append(seconds)
        self.now += seconds

    def run(self, **options):
        return retry(self.call, sleep=self.sleep, clock=lambda: self.now, random=lambda: self.chance.pop(0), **options)


class Retry(unittest.TestCase):
    def test_success_needs_no_wait(self):
        for value in (7, None, False):
            world = World(value)
            self.assertEqual((world.run(), world.waits, len(world.chance)), (value, [], 99))

    def test_waits_grow_up_to_the_longest(self):
        world = World(*[TryAgain() for _ in range(6)], "done")
        self.assertEqual(world.run(attempts=9, longest=5.0), "done")
        self.assertEqual(world.waits, [1.0, 2.0, 4.0, 5.0, 5.0, 5.0])

    def test_chance_shortens_waits(self):
        world = World(TryAgain(), TryAgain(), TryAgain(), 1, chance=(0.0, 0.5, 1.0))
        world.run(first=8.0, factor=1.0)
        self.assertEqual((world.waits, world.chance), ([4.0, 6.0, 8.0], []))

    def test_after_is_a_least(self):
        world = World(TryAgain(after=50), TryAgain(after=0.1), 1, chance=(0.0, 0.0))
        world.run()
        self.assertEqual(world.waits, [50, 1.0])

    def test_the_last_error_says_how_often(self):
        errors = [TryAgain(str(number)) for number in range(3)]
        world = World(*errors)
        with self.assertRaises(TryAgain) as caught:
            world.run(attempts=3)
        self.assertIs(caught.exception, errors[2])
        self.assertEqual((caught.exception.attempts, world.calls, len(world.waits)), (3, 3, 2))

    def test_other_errors_pass(self):
        for error in (KeyError("x"), KeyboardInterrupt()):
            world = World(TryAgain(), error)
            with self.assertRaises(type(error)):
                world.run()
            self.assertEqual(world.calls, 2)

    def test_a_deadline_is_kept(self):
        world = World(*[TryAgain() for _ in range(9)])
        with self.assertRaises(TryAgain) as caught:
            world.run(attempts=9, deadline=3.0)
        self.assertEqual((world.waits, caught.exception.attempts), ([1.0, 2.0], 3))
        world = World(TryAgain(), 1, takes=2.5)
        with self.assertRaises(TryAgain):
            world.run(deadline=3.0)
        self.assertEqual((world.waits, world.calls), ([], 1))
        world = World(TryAgain(), 1, takes=2.0)
        self.assertEqual(world.run(deadline=3.0), 1)

    def test_attempts_are_at_least_one(self):
        for attempts in (0, -1):
            world = World(1)
            with self.assertRaises(ValueError):
                world.run(attempts=attempts)
            self.assertEqual(world.calls, 0)


unittest.main()
