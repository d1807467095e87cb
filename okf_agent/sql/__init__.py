"""One query, run safely: its text, its session, its rows, its errors in words."""
