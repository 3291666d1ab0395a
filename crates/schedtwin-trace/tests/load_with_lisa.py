# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads a trace.dat with LISA and prints how many events of each name it finds.

Needs the PyPI package `lisa-linux` and trace-cmd. Usage: load_with_lisa.py TRACE EVENT...
"""

import sys

try:
    from lisa.trace import Trace
except Exception as error:  # whatever its own dependencies make of this Python
    print(f"skip: {type(error).__name__}: {error}")
    sys.exit(0)

trace = Trace(sys.argv[1], events=sys.argv[2:])
for event in sys.argv[2:]:
    print(event, len(trace.df_event(event)))
