#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints what the binary and the Python package link, for who has to trust it: one line for each crate.

    release/dependencies.py                        the table (docs/results/dependencies.txt)
    release/dependencies.py --advisories FOLDER    known advisories, from a copy of github.com/rustsec/advisory-db

The sources of all crates must be there (cargo fetch). Needs Python 3.11. Exit code 1: an advisory is open.

Columns: lines of Rust; lines with the word `unsafe`; build: a program that runs while building; macro: code that runs in the
compiler; and what is named in its sources outside of tests and examples: network (std::net, sockets of libc), processes
(std::process::Command), files (std::fs, File::open or create).
"""

import argparse
import pathlib
import re
import sys
import tomllib

from licences import linked

NAMED = {
    "network": r"std::net\b|TcpStream|UdpSocket|UnixStream|libc::socket",
    "processes": r"process::Command|Command::new",
    "files": r"\bstd::fs\b|\bfs::(?:read|write|File|OpenOptions)|File::(?:open|create)\b",
}


def sources(package: dict) -> list[str]:
    """The texts of its library's sources, without comments and without what is built for tests only."""
    lib = next((target for target in package["targets"] if {"lib", "proc-macro", "rlib", "dylib"} & set(target["kind"])), None)
    if lib is None:
        return []
    texts = []
    for file in sorted(pathlib.Path(lib["src_path"]).parent.rglob("*.rs")):
        if {"tests", "benches", "examples"} & set(file.parts) or file.stem in ("tests", "test"):
            continue
        text = file.read_text(encoding="utf-8", errors="replace").split("#[cfg(test)]\nmod ")[0]
        texts.append(re.sub(r"//[^\n]*", "", text))
    return texts


def table(packages: dict[str, dict]) -> None:
    print(f"{'crate':34} {'lines':>7} {'unsafe':>6} {'build':5} {'macro':5} names")
    lines_in_all = unsafe_in_all = 0
    for name, package in packages.items():
        texts = sources(package)
        lines = sum(line.strip() != "" for text in texts for line in text.splitlines())
        unsafe = sum(bool(re.search(r"\bunsafe\b", line)) for text in texts for line in text.splitlines())
        kinds = {kind for target in package["targets"] for kind in target["kind"]}
        named = [what for what, pattern in NAMED.items() if any(re.search(pattern, text) for text in texts)]
        build = "build" if "custom-build" in kinds else ""
        macro = "macro" if "proc-macro" in kinds else ""
        print(f"{name:34} {lines:>7,} {unsafe:>6} {build:5} {macro:5} {', '.join(named)}".rstrip())
        lines_in_all, unsafe_in_all = lines_in_all + lines, unsafe_in_all + unsafe
    print(f"{f'{len(packages)} crates':34} {lines_in_all:>7,} {unsafe_in_all:>6}")


def version(text: str) -> tuple:
    # What follows a plus does not count.
    number, _, pre = text.strip().partition("+")[0].partition("-")
    parts = [int(part) for part in re.findall(r"\d+", number)]
    return (*parts, *[0] * (3 - len(parts)), 0 if pre else 1)


def is_in(mine: tuple, requirement: str) -> bool:
    """Whether a version satisfies a requirement of Cargo's syntax, as advisories use it."""
    for comparator in requirement.split(","):
        operator, bound = re.fullmatch(r"\s*(>=|<=|>|<|=|\^|~)?\s*(.*)", comparator).groups()
        than = version(bound)
        # Without an operator: up to the next version that may break.
        fixed = 2 if operator == "~" else next((at for at, part in enumerate(than[:3]) if part), 2) + 1
        holds = {">=": mine >= than, "<=": mine <= than, ">": mine > than, "<": mine < than, "=": mine == than}
        if not holds.get(operator, mine >= than and mine[:fixed] == than[:fixed]):
            return False
    return True


def advisories(packages: dict[str, dict], folder: pathlib.Path) -> int:
    crates = folder / "crates"
    if not crates.is_dir():
        sys.exit(f"{folder} has no folder crates: it is to be a copy of github.com/rustsec/advisory-db")
    found = 0
    for name, package in packages.items():
        for file in sorted((crates / package["name"]).glob("*.md")):
            entry = tomllib.loads(re.search(r"```toml\n(.*?)```", file.read_text(), re.S)[1])
            versions = entry.get("versions", {})
            safe = versions.get("patched", []) + versions.get("unaffected", [])
            if entry["advisory"].get("withdrawn") or any(is_in(version(package["version"]), one) for one in safe):
                continue
            kind = entry["advisory"].get("informational", "vulnerability")
            print(f"{name}: {entry['advisory']['id']}, {kind}")
            found += kind != "unmaintained"
    print(f"{len(packages)} crates, {found} open advisories that are more than «unmaintained»")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--advisories", type=pathlib.Path, metavar="FOLDER", help="a copy of RustSec's database")
    arguments = parser.parse_args()
    packages = linked()
    if arguments.advisories:
        sys.exit(1 if advisories(packages, arguments.advisories) else 0)
    table(packages)


if __name__ == "__main__":
    main()
