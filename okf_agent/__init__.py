"""Ask a database a question through an Open Knowledge Format bundle."""

DISTRIBUTION = "okf-sql-agent"
