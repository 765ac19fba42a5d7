"""Language servers, which know definitions, references and faults of code; see docs/lsp.md."""
