"""What a client and a server say to each other."""
