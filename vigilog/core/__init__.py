"""What every layer speaks of: values and their types, places in a text, errors."""
