#!/bin/bash
cat > bank.py <<'PY'
"""Accounts that several threads use."""

import threading


class Refused(Exception):
    """An account has too little."""


class Bank:
    """Balances under one lock, which the thread that has it may take again."""

    def __init__(self, balances):
        self._balances = dict(balances)
        self._lock = threading.RLock()

    def balance(self, name):
        with self._lock:
            return self._balances[name]

    def total(self):
        with self._lock:
            return sum(self._balances.values())

    def transfer(self, source, target, cents):
        if cents < 1:
            raise ValueError(f"{cents} cents cannot be transferred")
        with self._lock:
            if target not in self._balances:
                raise KeyError(target)
            if self._balances[source] < cents:
                raise Refused(source)
            self._balances[source] -= cents
            self._balances[target] += cents

    def audit(self, check):
        with self._lock:
            return check(dict(self._balances))
PY
