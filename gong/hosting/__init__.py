"""Many sessions in one process, for programs that speak a protocol: no protocol is in here."""
