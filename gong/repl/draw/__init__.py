"""How a conversation looks: lines, cards, Markdown, panels, the terminal."""
