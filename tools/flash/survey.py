"""What is on a board: asked once, by a script that runs on it."""

from typing import Any, NamedTuple

from tools.flash.line import Line, Refused

OLDEST = (1, 22)
WIPE_S = 180.0  # a flash full of small files is erased block by block

# `trace` is what a virtual board's machine has and no real one's.
_SURVEY = """
import gc,json,machine,os,sys
gc.collect()
from binascii import hexlify
def _system():
 try:
  import vfs
  for m in vfs.mount():
   if m[1]=='/':return str(m[0])
 except Exception:pass
 try:
  from flashbdev import bdev
  b=bytearray(64);bdev.readblocks(0,b)
  return 'littlefs' if b'littlefs' in b else 'FAT'
 except Exception:return ''
def _text(p):
 try:
  with open(p) as f:return f.read(4096)
 except Exception:return None
s=os.statvfs('/')
i=sys.implementation
print(json.dumps({'version':list(i[1])[:3],'machine':i[2] if len(i)>2 else '',
'mpy':getattr(i,'_mpy',0),'system':_system(),'virtual':hasattr(machine,'trace'),
'id':hexlify(machine.unique_id()).decode(),'free':s[0]*s[3],'total':s[0]*s[2],
'files':[f[0] for f in os.ilistdir('/')],'config':_text('/config.json')}))
"""

_WAITING = """
import json
try:
 from outbox import Outbox
 o=Outbox('/outbox.d',max_bytes=1<<30,max_count=1<<30)
 print(json.dumps(len(o)))
except Exception:
 print('null')
"""

_WIPE = """
import os
def _wipe(d):
 for f in list(os.ilistdir(d)):
  p=d+'/'+f[0]
  if f[1]&0x4000:
   _wipe(p);os.rmdir(p)
  else:os.remove(p)
_wipe('')
"""

_FORMAT = """
import os
from flashbdev import bdev
os.umount('/')
os.VfsLfs2.mkfs(bdev)
os.mount(os.VfsLfs2(bdev),'/')
"""


class Survey(NamedTuple):
    """version: of MicroPython. mpy: `sys.implementation._mpy`. free, total: bytes of flash."""

    version: tuple[int, ...]
    machine: str
    mpy: int
    system: str
    virtual: bool
    id: str
    free: int
    total: int
    files: tuple[str, ...]
    config: str | None

    @property
    def is_old(self) -> bool:
        return self.version < OLDEST

    @property
    def is_fat(self) -> bool:
        return "fat" in self.system.lower()

    @property
    def has_outbox(self) -> bool:
        return "outbox.d" in self.files

    def version_text(self) -> str:
        return ".".join(map(str, self.version))


def look(line: Line) -> Survey:
    """Ask the board, which is at its REPL. Raises Broken, Refused."""
    found: dict[str, Any] = line.ask(_SURVEY)
    found["version"] = tuple(found["version"])
    found["files"] = tuple(found["files"])
    return Survey(**found)


def readings_waiting(line: Line) -> int | None:
    """Return how many readings wait in the outbox; None if its firmware can not tell."""
    try:
        waiting: int | None = line.ask(_WAITING)
    except Refused:
        return None
    return waiting


def wipe(line: Line, *, as_littlefs: bool) -> None:
    """Remove everything from the flash, or format it anew."""
    line.run(_FORMAT if as_littlefs else _WIPE, silent_s=WIPE_S)
