"""Commands as a reader types them: under a terminal of fixed width, without colours."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import warnings
from pathlib import Path
from unittest import mock

from concordant.apps.commands import main

WIDTH, HEIGHT = 100, 50
LIMIT = 240
"""Seconds that a block may take."""
LEFT_OUT = ("FORCE_COLOR", "CLICOLOR_FORCE", "PYTHONPATH")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Threads that spin while they wait for each other make a busy machine forty times as slow."""

CONTROL = re.compile(
    r"\x1b\[(?P<how>[0-9;?]*)(?P<what>[A-Za-z])|\x1b\][^\x07]*\x07|(?P<end>[\r\n])|(?P<text>[^\x1b\r\n]+|\x1b)"
)
LEAVES = re.compile(r"^\w+=|^(cd|export|for|set|while)\b|&\s*$", re.MULTILINE)
"""What a command leaves to the next one: variables, the folder, something in the background."""
PLAIN = re.compile(r"concordant (?![^\n]*[$`|&;<>*?(){}~])[^\n]*")
"""A command of the package that asks nothing of the shell."""
SILENT = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
"""What Python does not say unless asked."""
MARK = re.compile("\n?\x1e([0-9]+)\x1e\n?")


class Terminal:
    """Runs blocks of commands in a folder; what they leave in the background ends with `close`."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        tools = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
        self.fixed = {
            "TERM": "xterm",
            "NO_COLOR": "1",
            "LC_ALL": "C.UTF-8",
            "PYTHONUTF8": "1",
            "COLUMNS": str(WIDTH),
            "LINES": str(HEIGHT),
            **ONE_THREAD,
            **environment,
        }
        kept = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
        self.environment = {**kept, "PATH": tools, **self.fixed}
        self.groups: list[int] = []

    def run(self, commands: list[str]) -> list[tuple[str, int]]:
        """Return what each command says (output and errors, as a terminal shows them) and its status."""
        commands = [command.replace("\\\n", " ") for command in commands]
        if LEAVES.search("\n".join(commands)):
            return self.typed(commands)
        return [self.called(one) if PLAIN.fullmatch(one) else self.typed([one])[0] for one in commands]

    def called(self, command: str) -> tuple[str, int]:
        """Run a command in this process: its libraries take longer to load than most examples to run."""
        master, slave = _terminal()
        said = _Listening(master)
        status: object = 0
        with (
            contextlib.chdir(self.folder),
            mock.patch.dict(os.environ, self.fixed),
            open(slave, "w", encoding="utf-8") as out,
            open(os.dup(slave), "w", encoding="utf-8") as err,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            for name in LEFT_OUT:
                os.environ.pop(name, None)
            warnings.resetwarnings()
            for category in SILENT:
                warnings.simplefilter("ignore", category)
            try:
                main(shlex.split(command, comments=True)[1:])
            except SystemExit as stop:
                status = stop.code or 0
        said.thread.join(5)
        return screen(said.text()), status if isinstance(status, int) else 1

    def typed(self, commands: list[str]) -> list[tuple[str, int]]:
        """Let sh run the commands."""
        ends = "".join(f"{command}\nprintf '\\n\\036%d\\036\\n' $?\n" for command in commands)
        master, slave = _terminal()
        said = _Listening(master)
        with open(os.devnull) as nothing:
            shell = subprocess.Popen(
                ["sh", "-c", ends],
                cwd=self.folder,
                env=self.environment,
                stdin=nothing,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
            )
        os.close(slave)
        self.groups.append(shell.pid)
        try:
            shell.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"not ready after {LIMIT} s; it said:\n{screen(said.text())}") from None
        parts = MARK.split(screen(said.until(len(commands))))
        pieces = [(one, int(status)) for one, status in zip(parts[::2], parts[1::2])]
        if len(pieces) < len(commands):  # the shell itself gave up: `exit`, or a syntax error
            pieces.append((parts[-1], shell.returncode or 1))
        return pieces

    def close(self) -> None:
        """End what still runs in the background of the blocks."""
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)
        until = time.monotonic() + 5
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                while time.monotonic() < until:
                    os.killpg(group, 0)
                    time.sleep(0.05)
                os.killpg(group, signal.SIGKILL)


def screen(written: str) -> str:
    """Return what a terminal shows in the end: bars of progress go back over what they wrote."""
    lines: list[str] = [""]
    row = column = 0
    for part in CONTROL.finditer(written):
        if part["text"]:
            lines[row] = lines[row][:column].ljust(column) + part["text"] + lines[row][column + len(part["text"]) :]
            column += len(part["text"])
        elif part["end"]:
            row, column = row + (part["end"] == "\n"), 0
            lines += [""] * (row == len(lines))
        elif part["what"] == "A":
            row = max(row - int(part["how"] or 1), 0)
        elif part["what"] == "K":
            lines[row] = "" if part["how"] == "2" else lines[row][:column]
        elif part["what"] == "J":
            lines[row:] = [lines[row][:column]]
        else:
            assert part["what"] in (None, "m", "h", "l"), f"this terminal does not know {part[0]!r}"
    return "\n".join(lines)


class _Listening:
    """Keeps reading a terminal, so that a server in the background never waits for a reader."""

    def __init__(self, master: int) -> None:
        self.master = master
        self.parts: list[bytes] = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # EIO: nobody holds the other end any more
            while part := os.read(self.master, 65536):
                self.parts.append(part)
        os.close(self.master)

    def text(self) -> str:
        return b"".join(self.parts).decode("utf-8", "replace")

    def until(self, marks: int) -> str:
        """Wait until as many ends of commands were read, or there is nothing more to read."""
        late = time.monotonic() + 5
        while self.text().count("\x1e") < 2 * marks and self.thread.is_alive() and time.monotonic() < late:
            self.thread.join(0.01)
        return self.text()


def _terminal() -> tuple[int, int]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    settings = termios.tcgetattr(slave)
    settings[1] &= ~termios.OPOST  # line ends as they are written
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    return master, slave
