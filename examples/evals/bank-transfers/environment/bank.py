"""Accounts that several threads use."""

import threading
import time


class Refused(Exception):
    """An account has too little."""


class Bank:
    def __init__(self, balances):
        self._balances = dict(balances)
        self._locks = {name: threading.Lock() for name in balances}

    def balance(self, name):
        return self._balances[name]

    def total(self):
        return sum(self._balances.values())

    def transfer(self, source, target, cents):
        with self._locks[source]:
            rest = self._balances[source] - cents
            if rest < 0:
                raise Refused(source)
            self._balances[source] = rest
            time.sleep(0)  # lets others run
            with self._locks[target]:
                self._balances[target] += cents

    def audit(self, check):
        return check(self._balances)
