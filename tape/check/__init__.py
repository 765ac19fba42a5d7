"""Whether a tape is sound: verify names damage, fsck explains and repairs it."""
