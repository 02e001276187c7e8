"""What `--json` prints, as typed documents. A server can return the same ones.

Each document is a frozen pydantic model; `schema.py` lists which command prints which. A use case of `workspace`
returns a document, or a value that a document is made `of`.
"""
