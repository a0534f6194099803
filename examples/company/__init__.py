"""What the demo is made of: a program, its data, its processes, its story."""
