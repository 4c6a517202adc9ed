"""Results for people and for other programs: in the terminal, and in the standard report format."""
