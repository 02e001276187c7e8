"""`python -m tallybook`, and what `spark-submit` can be given."""

from __future__ import annotations

import sys

from tallybook.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
