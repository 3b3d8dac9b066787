"""Files of ``_delta_log`` to actions and state: listing, replay, checkpoints."""
