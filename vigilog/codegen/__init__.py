"""Client classes, generated from the view frames of a program."""
