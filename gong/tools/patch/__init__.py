"""Patches in the form of `*** Begin Patch`: read, planned and put on the disk, all or nothing."""
