#!/usr/bin/env bash
# pyarrow casts a DECIMAL to DOUBLE by a division that is rounded twice: the result is not the double nearest to the number.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1
"$folder/venv/bin/python" - <<'PY'
from decimal import Decimal

import pyarrow as pa

print("pyarrow", pa.__version__)
numbers = [Decimal(n).scaleb(-2) for n in range(-1000, 1001)]
cast = pa.array(numbers, pa.decimal128(5, 2)).cast(pa.float64()).to_pylist()
wrong = [(number, value) for number, value in zip(numbers, cast) if value != float(number)]
print(len(wrong), "of", len(numbers), "are not the nearest double, for example", wrong[0][0], "as", repr(wrong[0][1]))
assert wrong
PY
