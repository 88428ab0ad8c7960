# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a run happens. Each file of this folder whose ``TESTBED`` is set is a testbed; ``base`` has the interface."""
