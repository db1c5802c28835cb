from __future__ import annotations

import sys
from pathlib import Path

# The corpus and the fuzzer are modules beside the tests.
sys.path.insert(0, str(Path(__file__).parent))
