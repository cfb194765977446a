"""What is collected: `scripts/test --goldens` runs where PyTorch is not installed."""

from __future__ import annotations

import os

collect_ignore = ["test_reference_torch.py"] if os.environ.get("TEXELGRAD_TEST_GOLDENS") else []
