"""``python -m groupsim`` is the command ``groupsim``."""

from __future__ import annotations

from groupsim.cli import main

if __name__ == "__main__":
    main()
