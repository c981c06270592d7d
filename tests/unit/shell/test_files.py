import json
import subprocess
import sys

import pytest

from cronring.controller.runtime.files import WANTED

# In a process of its own: a limit that was lowered can't be raised again.
PROGRAM = """
import json, resource
from cronring.controller.runtime.files import raise_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, (%d, %d))
print(json.dumps([raise_open_files(), *resource.getrlimit(resource.RLIMIT_NOFILE)]))
"""


@pytest.mark.parametrize(("soft", "hard"), [(256, 1_024), (1_024, 1_024)])
def test_a_process_may_open_what_the_system_allows(soft: int, hard: int) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM % (soft, hard)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [1_024, 1_024, hard]
    assert hard <= WANTED
