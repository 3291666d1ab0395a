#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes crates/schedtwin-cli/src/licences.txt: what the binary links, with licences and their texts.

    release/licences.py            after a change of Cargo.lock; the sources of all crates must be there (cargo fetch)

A test of schedtwin-cli holds the list against Cargo.lock.
"""

import collections
import itertools
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "crates/schedtwin-cli/src/licences.txt"
ROOTS = [(ROOT, "schedtwin-cli"), (ROOT / "python", "schedtwin-python")]
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")


def linked() -> dict[str, dict]:
    """The packages that the binary or the Python package links on any target, by name and version."""
    out: dict[str, dict] = {}
    for (folder, root), target in itertools.product(ROOTS, TARGETS):
        command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
        metadata = json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout)
        packages = {package["id"]: package for package in metadata["packages"]}
        nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        start = next(id for id, package in packages.items() if package["name"] == root)
        seen, todo = set(), [start]
        while todo:
            id = todo.pop()
            if id in seen:
                continue
            seen.add(id)
            for dependency in nodes[id]["deps"]:
                if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                    todo.append(dependency["pkg"])
        for id in seen:
            package = packages[id]
            if package["source"] is not None:
                out[f"{package['name']} {package['version']}"] = package
    return dict(sorted(out.items()))


def texts(package: dict) -> list[str]:
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(file for file in folder.iterdir() if file.name.upper().startswith(NAMES) and file.is_file())
    mit = [file for file in files if "MIT" in file.name.upper()]
    # Where there is a choice, the licence that is chosen is the short one.
    if mit and " OR " in (package["license"] or ""):
        files = mit
    read = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    return ["\n".join(line.rstrip() for line in text.strip().splitlines()) for text in read]


def main() -> None:
    packages = linked()
    lines = [
        "schedtwin is free software under the GNU General Public License, version 2 or later;",
        "as some parts are under Apache-2.0 alone, a binary as a whole is under version 3 or later.",
        "It links these packages, whose licences follow:",
        "",
    ]
    holders: dict[str, list[str]] = collections.OrderedDict()
    for name, package in packages.items():
        lines.append(f"{name}: {package['license'] or 'see its text'}")
        for text in texts(package):
            holders.setdefault(text, []).append(name)
    for text, names in holders.items():
        lines += ["", "=" * 80, ", ".join(names), "=" * 80, text]
    OUT.write_text("\n".join(lines) + "\n")
    print(f"{OUT.relative_to(ROOT)}: {len(packages)} packages, {len(holders)} texts, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
