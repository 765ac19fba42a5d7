"""Export and import: one self-contained file, message arrays, Markdown; masking of secrets."""
