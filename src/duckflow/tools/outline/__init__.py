"""What a file defines, by grammar or by its headings."""
