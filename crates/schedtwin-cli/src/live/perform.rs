// SPDX-License-Identifier: GPL-2.0-or-later
//! The work of a recording: an rt-app file that is executed here, or a command.
//!
//! Settings of threads hold from the start: an rt-app file is executed as if it were written with them; of a command those that
//! are for all threads (`*`) are inherited from here.

use crate::arguments::Perform;
use crate::failure::Failure;
use crate::settings::parse;
use schedtwin_live::runner::{self, Speed};
use schedtwin_live::settings::{Applied, Planned, thread_changes};
use schedtwin_workload::Workload;
use std::os::unix::process::CommandExt;
use std::process::Command;

pub fn perform(arguments: &Perform) -> Result<(), Failure> {
    let mut settings = Vec::new();
    for line in &arguments.set {
        settings.extend(parse(line)?.threads);
    }
    if let Some(path) = &arguments.workload {
        let workload = Workload::from_path_or_name(&path.to_string_lossy())?;
        let workload = workload.with_thread_settings(&settings)?;
        let code = workload.code(&runner::this_host());
        let code = code.ok_or_else(|| Failure::bad("it is no rt-app file"))??;
        let speed = Speed::measure()
            .map_err(|error| Failure::bad(format!("failed to measure the CPU: {error}")))?;
        return runner::run(code, speed).map_err(|refused| Failure::bad(refused.to_string()));
    }
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(Failure::bad("there is nothing to perform"));
    };
    settings.retain(|setting| setting.threads == "*");
    if !settings.is_empty() {
        let mut planned = Planned::default();
        thread_changes(&settings, Some(std::process::id()), &mut planned);
        let own = std::process::id();
        let of_own = |change: &_| matches!(change, schedtwin_live::settings::journal::Change::Thread { tid, .. } if *tid == own);
        planned.changes.retain(of_own);
        if let Some(refused) = planned.refused.first() {
            return Err(Failure::bad(refused.clone()));
        }
        Applied::make_unjournalled(&planned).map_err(Failure::bad)?;
    }
    let error = Command::new(program).args(rest).exec();
    Err(Failure::bad(format!("failed to run {program}: {error}")))
}
