"""The algorithms as the papers print them: to be shown, and to be compared with."""
