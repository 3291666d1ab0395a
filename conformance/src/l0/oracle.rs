// SPDX-License-Identifier: GPL-2.0-or-later
//! The compiled C program: how it is built and talked to (`shim/protocol.h`).

use super::{OP_BEGIN, OP_END, OP_FIRST, Record};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Compiles `shim`, a path in `conformance/src`, with the system's C compiler. `quote_dirs` are where
/// the kernel's files lie.
pub fn compile(
    shim: &str,
    quote_dirs: &[&Path],
    build_dir: &Path,
    flags: &[&str],
) -> Result<PathBuf, String> {
    let source = super::home().join("src").join(shim);
    let binary = build_dir.join(source.file_stem().expect("a shim is a file"));
    let compiler = std::env::var("CC").unwrap_or("cc".to_string());
    let mut command = Command::new(&compiler);
    // As the kernel is built: pointers of different types may alias, signed arithmetic wraps.
    command.args(["-std=gnu11", "-fno-strict-aliasing", "-fwrapv", "-w"]);
    command.args(flags);
    let shared = super::home().join("src/l0/shim");
    for dir in quote_dirs.iter().chain(&[shared.as_path()]) {
        command.arg("-iquote").arg(dir);
    }
    command.arg("-I").arg(shared.join("include"));
    command.arg("-o").arg(&binary).arg(&source).current_dir(build_dir);
    let output = command.output().map_err(|error| format!("run {compiler}: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("compile {shim} against this kernel tree:\n{text}"));
    }
    Ok(binary)
}

/// Compiles `FOLDER/shim.c` with `NAME_extract.h` and the tree's own red-black trees.
pub fn compile_with_rbtree(
    tree: &Path,
    build_dir: &Path,
    flags: &[&str],
    (folder, name): (&str, &str),
    text: &str,
) -> Result<PathBuf, String> {
    let write = |file: &Path, text: &str| {
        std::fs::write(file, text).map_err(|error| format!("write {}: {error}", file.display()))
    };
    write(&build_dir.join(format!("{name}_extract.h")), text)?;
    // What else these headers include is empty.
    let linux = build_dir.join("linux");
    std::fs::create_dir_all(&linux)
        .map_err(|error| format!("create {}: {error}", linux.display()))?;
    for header in ["rbtree.h", "rbtree_types.h", "rbtree_augmented.h"] {
        write(
            &linux.join(header),
            &super::extract::read(tree, &format!("include/linux/{header}"))?,
        )?;
    }
    let include = format!("-I{}", build_dir.display());
    let flags: Vec<&str> = flags.iter().copied().chain([include.as_str()]).collect();
    let shim = format!("{folder}/shim.c");
    let quoted = [build_dir, &tree.join("lib"), &tree.join("kernel/sched")];
    compile(&shim, &quoted, build_dir, &flags)
}

/// Appends one sequence in the oracle's format.
pub fn encode(records: &[Record], verbose: bool, bytes: &mut Vec<u8>) {
    let mut put = |op: u64, args: &[u64]| {
        bytes.extend_from_slice(&op.to_ne_bytes());
        for arg in args {
            bytes.extend_from_slice(&arg.to_ne_bytes());
        }
    };
    put(OP_BEGIN, &[verbose as u64, 0, 0, 0, 0, 0]);
    for record in records {
        put(OP_FIRST + record.op as u64, &record.args);
    }
    put(OP_END, &[0; super::ARGS]);
}

/// A running oracle. Killed when dropped.
pub struct Oracle {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Oracle {
    /// Starts it.
    pub fn start(binary: &Path) -> Result<Oracle, String> {
        let mut child = Command::new(binary)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("run {}: {error}", binary.display()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout was piped");
        Ok(Oracle { child, stdin, stdout: BufReader::with_capacity(1 << 16, stdout) })
    }

    /// The end to write sequences to; closing it ends the oracle.
    pub fn take_stdin(&mut self) -> ChildStdin {
        self.stdin.take().expect("stdin is taken once")
    }

    /// One word of its answer.
    pub fn read_word(&mut self) -> Result<u64, String> {
        let mut bytes = [0; 8];
        self.stdout.read_exact(&mut bytes).map_err(|error| format!("read the oracle: {error}"))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Runs one sequence with every operation's words.
    pub fn replay(&mut self, records: &[Record]) -> Result<Vec<Vec<u64>>, String> {
        let mut bytes = Vec::new();
        encode(records, true, &mut bytes);
        // One sequence fits into the pipe's buffer and the oracle's, so nobody waits for us.
        let mut stdin = self.take_stdin();
        stdin.write_all(&bytes).map_err(|error| format!("write to the oracle: {error}"))?;
        drop(stdin);
        let mut answers = Vec::new();
        for _ in records {
            let count = self.read_word()?;
            answers.push((0..count).map(|_| self.read_word()).collect::<Result<_, _>>()?);
        }
        Ok(answers)
    }

    /// Ends it now.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// Lets it end by itself, which it does when its input is closed.
    pub fn finish(mut self) -> Result<(), String> {
        drop(self.stdin.take());
        self.child.wait().map_err(|error| format!("wait for the oracle: {error}"))?;
        Ok(())
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
