"""Facts that are not ground, and the views they make: conditions, regions, T_P with supports, its maintenance, updates of views."""
