# SPDX-License-Identifier: GPL-2.0-or-later
"""The command `schedtwin`, which is also `python -m schedtwin`."""

from __future__ import annotations

import sys

from . import _native


def main() -> None:
    """Runs the command with the arguments of this process."""
    sys.exit(_native.command(["schedtwin", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
