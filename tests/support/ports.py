"""TCP ports for tests in which others must know one before anybody listens there: by the package's own rule."""
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "integrations/python/tutti"))
from _ports import BESIDE, free_port  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import
