"""States of a data folder, to be read while others write."""
