"""Compile a schema, column descriptions and business rules into an Open Knowledge Format bundle."""
