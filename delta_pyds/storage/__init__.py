"""File systems and object stores behind one small interface."""
