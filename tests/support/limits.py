"""How long a test waits for what must come: so long that only a hang can take it, on the busiest machine."""

ONLY_A_HANG_S = 1_800
