"""``python -m reproduction``."""

from __future__ import annotations

import sys

from reproduction.command import main

if __name__ == "__main__":
    sys.exit(main())
