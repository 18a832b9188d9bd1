"""Makes `python -m nonneg` the same as `nonneg`."""

from __future__ import annotations

import sys

from nonneg.cli import main

sys.exit(main())
