# SPDX-License-Identifier: Apache-2.0
"""Steps in turn with other jobs of the same machine, so that they can be compared step by step while what else the machine does falls on all alike."""
import os
import pathlib


class Turns:
    """Every `size` steps the job waits for a byte of the pipe `go` in `folder`; when they are done it writes one to the pipe `done`. Steps are counted from 0."""

    def __init__(self, folder: pathlib.Path, size: int):
        self.folder, self.size = folder, size
        self.go = self.done = -1

    @classmethod
    def of(cls, text: str) -> "Turns":
        """From FOLDER:STEPS of a command line."""
        folder, _, size = text.rpartition(":")
        return cls(pathlib.Path(folder), int(size))

    def before(self, step: int) -> None:
        if self.go < 0:
            self.go, self.done = os.open(self.folder / "go", os.O_RDONLY), os.open(self.folder / "done", os.O_WRONLY)
        if step % self.size == 0 and not os.read(self.go, 1):
            raise SystemExit(f"{self.folder}: nobody gives turns any more")

    def after(self, step: int) -> None:
        if (step + 1) % self.size == 0:
            os.write(self.done, b".")
