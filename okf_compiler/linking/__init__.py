"""What `okf_compiler/link.py` does, step by step.

`words` compares words; `columns` says what each column is called and about. `rule_names` finds rules and `mentions`
finds phrases in a rule's text. `stated` and `infer` make `links` of what they find; `reach` adds the tables a rule
needs in the end.
"""
