"""Class and view frames (Staudt, Jarke, Quix 1996): their text, what it means, and the relations and rules that it becomes."""
