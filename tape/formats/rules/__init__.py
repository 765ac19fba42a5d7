"""What each provider refuses about a message array, one module for each API: pure.

`check` names every reason a provider would give; with `strict` also what the API itself forgives
and many hosts that speak it do not. An empty list means that the array can be sent.
"""
