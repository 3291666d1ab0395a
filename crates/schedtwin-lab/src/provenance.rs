// SPDX-License-Identifier: GPL-2.0-or-later
//! Where a result comes from: enough to repeat it, and how far to trust it.

/// Identity of what was run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Version of schedtwin.
    pub version: String,
    /// Version of the model: results of equal model versions are comparable.
    pub model_version: String,
    /// The machine as the user spelled it.
    pub machine: String,
    /// The workload as the user spelled it.
    pub workload: String,
    /// Name and digest of every input, in a fixed order.
    pub hashes: Vec<(String, String)>,
    /// How long each run simulates; `None` where the workload decides.
    pub duration_ns: Option<u64>,
    /// One line: fitted or not, robust or not, what it rests on.
    pub trust: String,
}

impl Provenance {
    /// Joins the provenances of the columns of a comparison: `of` pairs the kernel's name with its
    /// provenance. Inputs that the columns share are listed once; each kernel's own under its name.
    pub fn join(of: &[(String, Provenance)]) -> Provenance {
        let mut joined = of.first().map(|(_, p)| p.clone()).unwrap_or_default();
        joined.hashes.clear();
        let mut trusts: Vec<&str> = Vec::new();
        for (kernel, one) in of {
            for (name, hash) in &one.hashes {
                let shared =
                    of.iter().all(|(_, p)| p.hashes.contains(&(name.clone(), hash.clone())));
                let name = if shared && name != "kernel" {
                    name.clone()
                } else {
                    format!("{name} {kernel}")
                };
                if !joined.hashes.iter().any(|(n, _)| *n == name) {
                    joined.hashes.push((name, hash.clone()));
                }
            }
            // Columns share most of what there is to say: each clause once.
            for clause in one.trust.split("; ") {
                if !trusts.contains(&clause) {
                    trusts.push(clause);
                }
            }
        }
        joined.trust = trusts.join("; ");
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_inputs_are_listed_once_and_kernels_by_name() {
        let of = |kernel: &str, hash: &str| {
            let hashes = [("machine", "m1"), ("kernel", hash), ("workload", "w1")];
            let hashes = hashes.iter().map(|(n, h)| (n.to_string(), h.to_string())).collect();
            let trust = "not fitted".to_string();
            (kernel.to_string(), Provenance { hashes, trust, ..Provenance::default() })
        };
        let joined = Provenance::join(&[of("a", "k1"), of("b", "k2")]);
        let names: Vec<String> = joined.hashes.iter().map(|(n, h)| format!("{n}={h}")).collect();
        assert_eq!(names, ["machine=m1", "kernel a=k1", "workload=w1", "kernel b=k2"]);
        assert_eq!(joined.trust, "not fitted");
    }
}
