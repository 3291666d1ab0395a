// SPDX-License-Identifier: GPL-2.0-or-later
//! What a page offers to choose from: the lists of `schedtwin list`.

use schedtwin_engine::kernel_file::{Kind, Setting, settings};
use schedtwin_engine::{list_machines, list_patches, list_releases, list_systems, list_workloads};
use serde_json::{Value, json};

/// All of it.
pub(crate) fn catalogue() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "machines": list_machines(),
        "kernels": list_releases(),
        "patches": list_patches(),
        "workloads": list_workloads(),
        "systems": list_systems(),
        "settings": settings().iter().map(setting).collect::<Vec<_>>(),
    })
}

fn setting(setting: &Setting) -> Value {
    let mut told = json!({
        "path": setting.path,
        "known_by": setting.known_by,
        "help": setting.help,
    });
    match &setting.kind {
        Kind::Choice { arms, .. } => {
            let arms: Vec<_> = arms.iter().map(|arm| (arm.word, arm.means.as_str())).collect();
            told["arms"] = json!(arms);
        }
        Kind::Integer { min, max, unit, .. } => {
            told["range"] = json!([min, max]);
            told["unit"] = json!(unit);
        }
        Kind::Switch => told["arms"] = json!([["true", ""], ["false", ""]]),
        Kind::Names => {}
    }
    told
}
