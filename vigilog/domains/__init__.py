"""Sources that are asked: what a mediator can call, and what it is told then."""
