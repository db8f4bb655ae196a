#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rankscope view --screenshot`: a picture without a display, of the size asked for, that shows something; and what is said when there is none to make."""

import os
import struct
import subprocess
import unittest
import zlib

from recorded_run import RANKSCOPE, RecordedRunTest


def read_png(path):
    """Width, height and rows of (r, g, b) bytes of an 8-bit RGB or RGBA picture."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        if kind == b"IDAT":
            packed += body
        at += 12 + size
    channels = {2: 3, 6: 4}[colour]
    assert depth == 8
    raw, stride, rows, last = zlib.decompress(packed), width * channels, [], bytearray(width * channels)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            left = line[x - channels] if x >= channels else 0
            above, corner = last[x], last[x - channels] if x >= channels else 0
            if kind == 1:
                line[x] = (line[x] + left) & 255
            elif kind == 2:
                line[x] = (line[x] + above) & 255
            elif kind == 3:
                line[x] = (line[x] + (left + above) // 2) & 255
            elif kind == 4:
                guess = left + above - corner
                a, b, c = abs(guess - left), abs(guess - above), abs(guess - corner)
                line[x] = (line[x] + (left if a <= b and a <= c else above if b <= c else corner)) & 255
        rows.append(line)
        last = line
    return width, height, channels, rows


class Screenshot(RecordedRunTest):
    def colours(self, path):
        width, height, channels, rows = read_png(path)
        return width, height, {bytes(row[x * channels:x * channels + 3]) for row in rows for x in range(0, width, 3)}

    def test_findings_of_three_runs_can_be_seen(self):
        for trace, finding in (("ddp-slow-rank", "RS301"), ("fsdp-no-prefetch", "RS201"), ("pp-few-micro-batches", "RS101")):
            with self.subTest(trace=trace):
                picture = self.folder / f"{trace}.png"
                result = self.view(self.run_of(trace), "--goto", finding, "--screenshot", picture, "--size", "1280x720")
                self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
                width, height, seen = self.colours(picture)
                self.assertEqual((width, height), (1280, 720))
                # What it is about: compute, communication alone, and the mark on the evidence.
                for meaning, colour in (("compute", "0072b2"), ("communication alone", "d55e00"), ("mark", "c2185b")):
                    self.assertIn(bytes.fromhex(colour), seen, meaning)

    def test_a_picture_does_not_depend_on_which_rank_is_loaded_first(self):
        for trace, finding in (("ddp-slow-rank", "RS301"), ("fsdp-no-prefetch", "RS201")):
            with self.subTest(trace=trace):
                pictures = []
                for i in range(4):
                    picture = self.folder / f"{trace}-{i}.png"
                    self.view(self.run_of(trace), "--goto", finding, "--screenshot", picture, "--size", "1280x720")
                    pictures.append(picture.read_bytes())
                self.assertEqual(len(set(pictures)), 1)

    def test_the_tool_passes_everything_on(self):
        picture = self.folder / "tool.png"
        command = [RANKSCOPE, "view", self.run_of("ddp-slow-rank"), "--screenshot", picture, "--size", "640x480", "--dark"]
        result = subprocess.run(list(map(str, command)), env=self.environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(read_png(picture)[:2], (640, 480))

    def test_what_cannot_be_shown_is_said(self):
        run = self.run_of("ddp-slow-rank")
        for arguments, code, words in ((("no-such-run", "--screenshot", "x.png"), 3, "no-such-run"),
                                       ((run, "--screenshot", self.folder / "no/such/folder.png"), 3, "cannot be written"),
                                       ((run, "--goto", "RS999", "--screenshot", self.folder / "x.png"), 3, "RS999"),
                                       ((run, "--goto", "RS999\u009b2J\x1b[31m", "--screenshot", self.folder / "x.png"), 3, "RS999\ufffd2J\ufffd[31m"),
                                       ((run, "--size", "12x", "--screenshot", "x.png"), 2, "--size"),
                                       ((run, "--screenshot", ""), 2, "--screenshot takes"),
                                       ((run, "--export", ""), 2, "--export takes"),
                                       ((run, "--goto", "", "--screenshot", "x.png"), 2, "--goto takes"),
                                       ((run, "--panel", "", "--screenshot", "x.png"), 2, "there is no panel ''"),
                                       ((run, "--panel", "differences", "--screenshot", "x.png"), 2, "two runs"),
                                       (("no-such-run", "--export", "x.xlsx"), 2, ".csv, .png, .svg"),
                                       (("no-such-run", "--screenshot", "x.csv"), 2, ".png, .svg"),
                                       ((run, "--no-such-option", "--screenshot", "x.png"), 2, "no-such-option")):
            with self.subTest(arguments=arguments):
                result = self.view(*arguments)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(words, result.stderr)
                tool = subprocess.run(list(map(str, (RANKSCOPE, "view", *arguments))), env=self.environment, capture_output=True, text=True, timeout=60)
                self.assertEqual(tool.returncode, code, tool.stderr)
        self.assertFalse((self.folder / "x.png").exists())

    def test_no_display_is_said_with_what_works_without(self):
        environment = {name: value for name, value in self.environment.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
        result = subprocess.run([os.environ["RANKSCOPE_VIEW_BINARY"], str(self.run_of("ddp-slow-rank"))], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 3)
        self.assertIn("--screenshot", result.stderr)


if __name__ == "__main__":
    unittest.main()
