"""One module for each page: its routes, what it asks the store, and which template shows that."""
