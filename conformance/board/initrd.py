"""Packs a folder as the initial file system of a guest."""
import gzip
import subprocess


def pack(root, names=None, level=9):
    """Those files of root, or all below it, as the kernel takes them: root's own, with no time of packing."""
    names = names or [".", *(str(path.relative_to(root)) for path in root.rglob("*"))]
    command = ["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"]
    packed = subprocess.run(command, cwd=root, input="\n".join(names).encode(), stdout=subprocess.PIPE, check=True)
    return gzip.compress(packed.stdout, compresslevel=level, mtime=0)
