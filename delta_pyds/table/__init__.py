"""The state of a table and the planning of scans."""
