"""PDF files: their pages as text, or as pictures."""
