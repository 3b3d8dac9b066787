"""The time that a test waits for what must come: so long that only a hang takes it, on the busiest machine."""

ONLY_A_HANG_S = 1_800
