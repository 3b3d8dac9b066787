"""The rules of the protocol, one subject a module; ``commands.verify`` runs them."""
