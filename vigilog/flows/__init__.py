"""What comes and goes by itself: streams into relations, sinks for views."""
