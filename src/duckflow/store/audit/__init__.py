"""The audit log: hash-chained entries, their verification and statistics."""
