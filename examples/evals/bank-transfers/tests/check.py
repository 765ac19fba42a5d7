import faulthandler
import random
import sys
import threading
import unittest

sys.path.insert(0, ".")
from bank import Bank, Refused

faulthandler.dump_traceback_later(15, exit=True)  # a deadlock fails
sys.setswitchinterval(1e-6)
NAMES = ["ada", "bob", "cleo"]


def run_threads(*functions):
    faults = []

    def guard(function):
        try:
            function()
        except BaseException as error:  # noqa: BLE001
            faults.append(error)

    threads = [threading.Thread(target=guard, args=(one,), daemon=True) for one in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(12)
        assert not thread.is_alive(), "a thread hangs"
    assert not faults, faults


class Transfers(unittest.TestCase):
    def setUp(self):
        self.bank = Bank(dict.fromkeys(NAMES, 1000))

    def move(self, seed):
        chance = random.Random(seed)
        for _ in range(400):
            source, target = chance.choices(NAMES, k=2)
            try:
                self.bank.transfer(source, target, chance.randint(1, 400))
            except Refused:
                pass

    def test_no_one_sees_an_amount_on_its_way(self):
        stop, sums = threading.Event(), set()

        def watch():
            while not stop.is_set():
                sums.add(self.bank.total())
                sums.add(self.bank.audit(lambda balances: sum(balances.values())))

        def move_all():
            try:
                run_threads(*[lambda seed=seed: self.move(seed) for seed in range(6)])
            finally:
                stop.set()

        run_threads(move_all, watch)
        sums.add(self.bank.total())
        self.assertEqual(sums, {3000})
        self.assertTrue(all(self.bank.balance(name) >= 0 for name in NAMES))

    def test_opposite_directions_do_not_block(self):
        def swap(one, two):
            for _ in range(2000):
                self.bank.transfer(one, two, 1)
                self.bank.transfer(two, one, 1)

        run_threads(lambda: swap("ada", "bob"), lambda: swap("bob", "ada"), lambda: swap("bob", "cleo"))
        self.assertEqual([self.bank.balance(name) for name in NAMES], [1000] * 3)

    def test_what_is_refused_changes_nothing(self):
        cases = [("ada", "bob", 1001, Refused), ("ada", "ada", 1001, Refused), ("ada", "bob", 0, ValueError),
                 ("ada", "bob", -5, ValueError), ("ada", "eve", 5, KeyError), ("eve", "ada", 5, KeyError)]
        for source, target, cents, error in cases:
            with self.assertRaises(error):
                self.bank.transfer(source, target, cents)
        self.bank.transfer("ada", "ada", 1000)
        with self.assertRaises(KeyError):
            self.bank.balance("eve")
        self.assertEqual([self.bank.balance(name) for name in NAMES], [1000] * 3)

    def test_an_audit_may_use_the_bank_and_fail(self):
        def check(balances):
            self.bank.transfer("ada", "bob", 10)
            return balances["ada"], self.bank.total(), self.bank.balance("ada")

        made = []
        run_threads(lambda: made.append(self.bank.audit(check)))
        self.assertEqual(made, [(1000, 3000, 990)])
        with self.assertRaises(ZeroDivisionError):
            self.bank.audit(lambda balances: 1 / 0)
        run_threads(lambda: self.bank.transfer("bob", "ada", 10))

    def test_an_audit_changes_nothing(self):
        self.bank.audit(lambda balances: balances.clear())
        self.assertEqual(self.bank.total(), 3000)

    def test_nothing_moves_during_an_audit(self):
        seen = []

        def check(balances):
            other = threading.Thread(target=self.bank.transfer, args=("ada", "bob", 1), daemon=True)
            other.start()
            other.join(0.2)
            seen.append((other.is_alive(), self.bank.balance("ada")))
            return other

        self.bank.audit(check).join(10)
        self.assertEqual((seen, self.bank.balance("ada")), ([(True, 1000)], 999))


unittest.main()
