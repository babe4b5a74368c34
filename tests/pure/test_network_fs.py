"""Which file system a database would stand on."""

import pytest

from gateway import network_fs
from gateway.errors import Misconfigured

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
tmpfs /run tmpfs rw 0 0
nas:/export /srv/nas nfs4 rw 0 0
/dev/sdb1 /srv/nas/disk ext4 rw 0 0
//box/share /mnt/my\\040share cifs rw 0 0
me@box: /home/me/far fuse.sshfs rw 0 0
/dev/sdc1 /data ext4 rw 0 0
nas:/late /data nfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/fieldpost/f.db", "ext4"),
        ("/srv/nas/f.db", "nfs4"),
        ("/srv/nas/new/folder/f.db", "nfs4"),
        ("/srv/nasty/f.db", "ext4"),
        ("/srv/nas/disk/f.db", "ext4"),
        ("/mnt/my share/f.db", "cifs"),
        ("/home/me/far/f.db", "fuse.sshfs"),
        ("/data/f.db", "nfs"),
    ],
)
def test_the_nearest_mount_that_came_last_holds_the_file(path, kind):
    assert network_fs.kind(path, MOUNTS) == kind


@pytest.mark.parametrize(
    "path", ["/srv/nas/f.db", "/mnt/my share/f.db", "/home/me/far/f.db", "/data/f.db"]
)
def test_a_network_file_system_is_refused_with_what_to_do(path):
    with pytest.raises(Misconfigured, match=r"network file system \(.*choose a folder on a disk"):
        network_fs.refuse(path, MOUNTS)


@pytest.mark.parametrize("path", ["/var/f.db", "/srv/nas/disk/f.db", "/run/f.db"])
def test_a_disk_of_this_machine_is_taken(path):
    network_fs.refuse(path, MOUNTS)


def test_a_link_is_followed_to_where_the_file_really_is(tmp_path):
    (tmp_path / "link").symlink_to("/srv/nas")
    with pytest.raises(Misconfigured):
        network_fs.refuse(tmp_path / "link" / "f.db", MOUNTS)


def test_where_nothing_is_known_nothing_is_refused():
    network_fs.refuse("/srv/nas/f.db", "")


def test_this_machines_own_mounts_are_read(tmp_path):
    network_fs.refuse(tmp_path / "f.db")
