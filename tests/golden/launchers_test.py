#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One job on virtual GPUs, wrapped from outside and rank by rank under mpirun: the same trace."""

import shutil
import sys
import unittest

from dump_trace import dump
from virtual_run import RANKSCOPE, SMALL, WORKLOAD, VirtualRunTest

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]
STEADY = {"OMPI_MCA_odls_base_num_threads": "0"}  # many ranks that exit at once hang Open MPI 4.1.4 now and then


class Launchers(VirtualRunTest):
    def test_mpirun_inside_and_outside_record_the_same(self):
        one_node = dict(SMALL, name="one-node", cluster={"nodes": 1, "ranks_per_node": 4})
        scenario = self.write_scenario(one_node)
        environment = dict(STEADY, RANKSCOPE_SCENARIO=str(scenario))
        self.check_run(RANKSCOPE, "-q", "run", "--virtual", "-o", "inside", "--", *MPIRUN, WORKLOAD, scenario, environment=environment)
        self.check_run(*MPIRUN, RANKSCOPE, "-q", "run", "--virtual", "-o", "outside", "--", WORKLOAD, scenario, environment=environment)
        # What stood in the shell before the launcher is known only where `rankscope run` was started in it.
        inside, outside = ([line for line in dump(self.folder / name / "trace.db") if not line.startswith("meta: key='start_env")] for name in ("inside", "outside"))
        self.assertGreater(len(inside), 100)
        self.assertEqual([pair for pair in zip(inside, outside) if pair[0] != pair[1]][:5], [])
        self.assertEqual(len(inside), len(outside))


if __name__ == "__main__":
    if not shutil.which("mpirun"):
        print("skipped: mpirun is not installed (package openmpi-bin)")
        sys.exit(77)
    unittest.main()
