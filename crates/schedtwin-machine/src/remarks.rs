// SPDX-License-Identifier: GPL-2.0-or-later
//! Remarks about a machine that is right: consequences of what its file leaves out, which a user of it may not expect.
//!
//! A class of cores stands for numbers, and not for what the processor is. So a file that says `class = "server"` and no more
//! is a machine of one package and one cache without hardware threads, and one with a topology that names no architecture has
//! arm64's domain levels. And every machine has schedutil, also
//! those on which Linux leaves the frequency to the processor's own driver.
//!
//! ```
//! use schedtwin_machine::Machine;
//! let remarks = Machine::load("spr-2s224").unwrap().remarks();
//! assert!(remarks.iter().any(|remark| remark.contains("intel_pstate")));
//! assert!(Machine::load("pixel6").unwrap().remarks().is_empty());
//! ```

use schedtwin_input::{Table, TomlDocument, Value};

use crate::{Architecture, Machine, core_class};

impl Machine {
    /// The remarks, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let Ok(document) = TomlDocument::parse(&self.source) else { return Vec::new() };
        let root = document.table();
        let class = tables(root, "core")
            .filter_map(|core| text(core, "class"))
            .find(|word| core_class::is_x86(word));
        let is_x86 = self.kernel_topology.architecture == Architecture::X86;
        let names_another =
            tables(root, "topologies").any(|topology| text(topology, "architecture").is_some());
        let mut remarks = Vec::new();
        if let Some(class) = class.filter(|_| !is_x86 && !names_another) {
            remarks.push(format!(
                "class `{class}` is of x86, but no topology names its `architecture`: the kernel builds arm64's domain levels; \
                 write architecture = \"x86\" in [topologies.NAME]"
            ));
        }
        if class.is_some() && self.left_out.iter().any(|path| path == "topologies.flat") {
            remarks.push(format!(
                "without a topology all {} CPUs share a package and a cache, and none is a hardware thread of another's core: \
                 write [topologies.NAME] with `package`, `llc` and architecture = \"x86\", and `core` with [smt] if there are \
                 threads",
                self.nr_cpus()
            ));
        }
        if is_x86 || class.is_some() {
            remarks.push(
                "kernels here have schedutil over the machine's own driver unless they are told; Linux drives Intel's \
                 processors with intel_pstate and AMD's with amd-pstate, which decide themselves in their active mode: \
                 scaling_driver=intel_pstate or amd-pstate-epp, hwp=true (docs/governors.md)"
                    .to_string(),
            );
        }
        remarks
    }
}

/// The tables under a key.
fn tables<'t>(root: &'t Table, key: &str) -> impl Iterator<Item = &'t Table> {
    let all = root.0.get(key).and_then(|entry| table(&entry.node.value));
    all.into_iter().flat_map(|all| all.0.iter()).filter_map(|(_, one)| table(&one.node.value))
}

fn table(value: &Value) -> Option<&Table> {
    match value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

fn text<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
    match table.0.get(key).map(|entry| &entry.node.value) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_input::Source;

    fn remarks(class: &str, topology: &str) -> Vec<String> {
        let named = if topology.is_empty() { "" } else { "topology = \"flat\"\n" };
        let text = format!(
            "name = \"m\"\ndescription = \"m\"\n{named}[core.c]\nclass = \"{class}\"\n[cpu.all]\ncpus = \"0-3\"\ncore = \"c\"\n\
             [domain.all]\ncpus = \"0-3\"\nopp = [{{ khz = 3_000_000, em_uw = 9_000_000 }}]\n{topology}"
        );
        let machine = Machine::from_source(&Source::new("m.toml", text), &[]);
        machine.unwrap_or_else(|faults| panic!("{faults}")).remarks()
    }

    #[test]
    fn a_server_of_a_few_lines_is_told_what_it_is() {
        let [levels, driver] = &remarks("server", "")[..] else { panic!("two remarks") };
        assert!(levels.contains("all 4 CPUs share a package"), "{levels}");
        assert!(driver.contains("scaling_driver=intel_pstate"), "{driver}");
        let flat = "[topologies.flat]\npackage = [\"0-3\"]\nllc = [\"0-3\"]\n";
        let told = remarks("desktop", flat);
        assert!(told[0].contains("arm64's domain levels") && told.len() == 2, "{told:?}");
        assert!(told[0].ends_with("write architecture = \"x86\" in [topologies.NAME]"), "{told:?}");
        assert_eq!(remarks("server", &format!("{flat}architecture = \"x86\"\n")).len(), 1);
        let arm = format!("{flat}architecture = \"arm64\"\n");
        assert!(remarks("server", &arm)[0].contains("schedutil"), "it is meant");
        assert_eq!(remarks("big", ""), [""; 0]);
    }
}
