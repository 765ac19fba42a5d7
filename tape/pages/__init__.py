"""A tape as a page for people: HTML with everything in it, Markdown of one path."""
