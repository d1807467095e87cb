"""The evaluation: suites of questions, cells to ask them in, scorers, figures and a report."""
