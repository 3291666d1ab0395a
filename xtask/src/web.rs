// SPDX-License-Identifier: GPL-2.0-or-later
//! `cargo xtask web`: the playground as files that any server, or none, can hand out.
//!
//! ```text
//! web/ (crate) ── cargo ── schedtwin_web.wasm ── wasm-bindgen ──┐
//! web/page/ ─────────────────────────────────────────────────────┼── target/web/
//! web/lessons/ ── runs fill in the numbers ── pages ──────────────┘
//! ```
//!
//! `engine.js` has the WebAssembly within it, packed, so that the pages work from a folder too: browsers fetch nothing for pages
//! that are files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use data_encoding::BASE64;
use flate2::{Compression, write::DeflateEncoder};

use crate::lessons;

const TARGET: &str = "wasm32-unknown-unknown";

/// The most bytes that the playground sends to a browser, packed as servers pack: more is a long wait on a phone.
const PACKED_BYTES_MAX: usize = 3_000_000;

/// The project's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the project")
}

/// Builds it, or says what is missing.
pub fn build(if_possible: bool) -> Result<(), String> {
    if let Some(lacks) = lacks()? {
        if if_possible {
            println!("skipped: {lacks}");
            return Ok(());
        }
        return Err(lacks);
    }
    let target = target_folder();
    let module = compile(&target)?;
    let out = target.join("web");
    if out.exists() {
        fs::remove_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    }
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    engine(&module, &out)?;
    let mut packed = packed_bytes(&out.join("engine.js"))?;
    for entry in fs::read_dir(root().join("web/page")).map_err(|error| error.to_string())? {
        let from = entry.map_err(|error| error.to_string())?.path();
        let name = from.file_name().expect("an entry has a name");
        fs::copy(&from, out.join(name)).map_err(|error| format!("{}: {error}", from.display()))?;
        packed += packed_bytes(&from)?;
    }
    if packed > PACKED_BYTES_MAX {
        return Err(format!(
            "the playground is {packed} bytes packed, more than {PACKED_BYTES_MAX}"
        ));
    }
    let count = lessons::write(&root().join("web/lessons"), &out)?;
    println!(
        "{}: the playground and {count} lessons, {:.2} MB packed",
        out.join("index.html").display(),
        packed as f64 / 1e6
    );
    Ok(())
}

/// Says what this computer lacks for it.
pub fn lacks() -> Result<Option<String>, String> {
    let mut asked = Command::new("rustc");
    asked.args(["--print", "target-libdir", "--target", TARGET]);
    let answer = asked.output().map_err(|error| format!("failed to run rustc: {error}"))?;
    let is_there = Path::new(String::from_utf8_lossy(&answer.stdout).trim()).is_dir();
    let lacks = format!(
        "this compiler has no target {TARGET}: `rustup target add {TARGET}` or web/std-from-source brings it"
    );
    Ok((!is_there).then_some(lacks))
}

/// Where cargo builds.
pub fn target_folder() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => root().join("target"),
    }
}

/// Compiles the crate; where its module is.
fn compile(target: &Path) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--package", "schedtwin-web", "--lib", "--profile", "web"]);
    cargo.args(["--target", TARGET]).current_dir(root());
    let status = cargo.status().map_err(|error| format!("failed to run cargo: {error}"))?;
    if !status.success() {
        return Err("the crate does not compile for WebAssembly".to_string());
    }
    Ok(target.join(TARGET).join("web/schedtwin_web.wasm"))
}

/// Writes `engine.js`.
fn engine(module: &Path, out: &Path) -> Result<(), String> {
    let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
    let glue = bindgen
        .input_path(module)
        .no_modules(true)
        .map_err(|error| error.to_string())?
        .typescript(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate_output();
    let mut glue = glue.map_err(|error| format!("wasm-bindgen: {error}"))?;
    let code = glue.js().to_string();
    let wasm = glue.wasm_mut().emit_wasm();
    let packed = deflated(&wasm)?;
    let code = serde_json::to_string(&code).map_err(|error| error.to_string())?;
    let text = format!(
        "// SPDX-License-Identifier: GPL-2.0-or-later\n// Made by `cargo xtask web`: the twin as WebAssembly, packed, and the code that calls it.\n\
         window.schedtwinEngine = {{ glue: {code}, wasm: \"{}\" }};\n",
        BASE64.encode(&packed)
    );
    let path = out.join("engine.js");
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// How many bytes of a file travel to a browser.
fn packed_bytes(path: &Path) -> Result<usize, String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    deflated(&bytes).map(|packed| packed.len())
}

fn deflated(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes).map_err(|error| error.to_string())?;
    packer.finish().map_err(|error| error.to_string())
}
