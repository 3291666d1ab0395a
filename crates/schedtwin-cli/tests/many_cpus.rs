// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines of more CPUs than a build is made for, and of as many.

use std::fs;
use std::process::{Command, Output};

/// A server of a thousand CPUs in few words.
fn machine(cpus: usize) -> String {
    let last = cpus - 1;
    format!(
        "name = \"many\"\ndescription = \"many CPUs\"\n\
         [core.some]\nclass = \"server\"\n\
         [cpu.all]\ncpus = \"0-{last}\"\ncore = \"some\"\ncapacity = 1024\n\
         [domain.all]\ncpus = \"0-{last}\"\nopp = [{{ khz = 1_000_000, em_uw = 300_000 }}, {{ khz = 3_000_000, em_uw = 2_000_000 }}]\n"
    )
}

fn run(cpus: usize) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("many.toml");
    fs::write(&path, machine(cpus)).expect("written");
    Command::new(env!("CARGO_BIN_EXE_schedtwin"))
        .args(["run", "-w", "periodic -t 1000 -f 100", "--duration", "50ms", "-m"])
        .arg(&path)
        .output()
        .expect("the binary starts")
}

#[test]
fn a_machine_has_at_most_as_many_cpus_as_the_build() {
    let (most, more) = if cfg!(feature = "nr-cpus-1024") { (1024, 1025) } else { (256, 257) };
    let output = run(most);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = run(more);
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(2), "{text}");
    assert!(text.contains(&format!("at most {most} CPUs")), "{text}");
}
