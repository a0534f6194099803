"""Benchmarks: Vigilog beside what people use instead. `python -m bench` lists them."""
