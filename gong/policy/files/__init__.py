"""Which files a call reaches, and which of them are sensitive or gong's own."""
