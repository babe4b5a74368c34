"""Copies what differs: under temporary names, verified, then renamed, main.py last.

Until the renaming begins the board boots what it had. A run that was cut off leaves files `….new`
behind; the next one takes them if they are right.
"""

import hashlib
import json
from binascii import b2a_base64
from collections.abc import Callable, Mapping

from tools.flash.line import Line, Refused
from tools.flash.trouble import Trouble

CHUNK_BYTES = 768
BLOCK_BYTES = 4096
_SPARE_BLOCKS = 4  # for the file system's own pages

_HASH = """
import hashlib,json
def _h(p):
 h=hashlib.sha256()
 try:
  with open(p,'rb') as f:
   while 1:
    b=f.read(512)
    if not b:break
    h.update(b)
 except OSError:return None
 from binascii import hexlify
 return hexlify(h.digest()).decode()
print(json.dumps([_h(p) for p in json.loads('''%s''')]))
"""

_RENAME = """
import json,os
def _gone(p):
 try:os.remove(p)
 except OSError:pass
for n,other in json.loads('''%s'''):
 os.rename(n+'.new',n)
 if other:_gone(other)
"""

Progress = Callable[[int, int], None]


class Copier:
    def __init__(self, line: Line, free_bytes: int) -> None:
        self._line = line
        self._free_bytes = free_bytes

    def differing(self, files: Mapping[str, bytes]) -> list[str]:
        """Return which of these the board has not, or has otherwise; in the order given."""
        names = list(files)
        others = [other for name in names if (other := _other_form(name))]
        hashes = dict(zip(names + others, self._hashes(names + others), strict=True))
        return [
            name
            for name, content in files.items()
            # A source beside the compiled file would be taken instead of it.
            if hashes[name] != _sha256(content) or hashes.get(_other_form(name) or "")
        ]

    def put(self, files: Mapping[str, bytes], progress: Progress) -> int:
        """Bring what differs onto the board, ready to be renamed; return how many bytes went over.

        Raises:
            Trouble: the flash is full, or worn out.
        """
        ready = self._hashes([_draft(name) for name in files])
        missing = [
            name
            for (name, content), found in zip(files.items(), ready, strict=True)
            if found != _sha256(content)
        ]
        self._require_room([len(files[name]) for name in missing])
        done, of = 0, sum(len(files[name]) for name in missing)
        for name in missing:
            self._write(_draft(name), files[name])
            done += len(files[name])
            progress(done, of)
        self._verify(files, missing)
        return of

    def rename(self, names: list[str]) -> None:
        """Put the new files in the place of the old ones, in this order."""
        pairs = [(name, _other_form(name)) for name in names]
        self._line.run(_RENAME % json.dumps(pairs))

    def _hashes(self, names: list[str]) -> list[str | None]:
        found: list[str | None] = self._line.ask(_HASH % json.dumps(names))
        return found

    def _write(self, name: str, content: bytes) -> None:
        try:
            self._line.run(f"from binascii import a2b_base64 as d\nf=open({name!r},'wb')")
            for at in range(0, len(content), CHUNK_BYTES):
                text = b2a_base64(content[at : at + CHUNK_BYTES], newline=False).decode()
                self._line.run(f"f.write(d('{text}'))")
            self._line.run("f.close()")
        except Refused as refused:
            if "OSError: 28" in str(refused) or "ENOSPC" in str(refused):
                raise Trouble("flash_full", needed=len(content), free=0) from refused
            raise

    def _verify(self, files: Mapping[str, bytes], written: list[str]) -> None:
        found = self._hashes([_draft(name) for name in written])
        for name, sha256 in zip(written, found, strict=True):
            if sha256 != _sha256(files[name]):
                raise Trouble("bad_flash", file=name)

    def _require_room(self, sizes: list[int]) -> None:
        blocks = sum(-(-size // BLOCK_BYTES) for size in sizes) + _SPARE_BLOCKS
        if sizes and blocks * BLOCK_BYTES > self._free_bytes:
            raise Trouble("flash_full", needed=blocks * BLOCK_BYTES, free=self._free_bytes)


def _draft(name: str) -> str:
    return name + ".new"


def _other_form(name: str) -> str | None:
    """Return the name under which an earlier run may have put the same module."""
    stem, _, kind = name.rpartition(".")
    if name == "main.py":
        return None
    return {"py": stem + ".mpy", "mpy": stem + ".py"}.get(kind)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
