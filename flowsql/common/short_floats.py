"""FLOAT as programs collect it: the number of its shortest text.

PyFlink hands results over as text, so that a program gets 0.1 where a function of the job sees 0.10000000149011612.
"""

from __future__ import annotations

import numpy as np


def shortest_float(value: float) -> float:
    """The double of the shortest text of a number of four bytes.

    >>> shortest_float(0.10000000149011612)
    0.1
    """
    return float(str(np.float32(value)))
