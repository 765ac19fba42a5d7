"""Pages of the web: which addresses may be asked, one page fetched, and its text."""
