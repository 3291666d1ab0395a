// SPDX-License-Identifier: GPL-2.0-or-later
//! A source's events as text, for the tests of all formats.

use super::{SourceFault, TraceEvent, TraceEventKind, TraceSource};

/// The events of a source, and the source at its end.
pub(crate) fn read_to_the_end<S: TraceSource>(
    mut source: S,
) -> Result<(Vec<TraceEvent>, S), SourceFault> {
    let mut events = Vec::new();
    while let Some(event) = source.next_event()? {
        events.push(event);
        assert!(events.len() < 1000);
    }
    Ok((events, source))
}

/// Times, CPUs and names of events, a line each.
pub(crate) fn shown(events: &[TraceEvent], source: &dyn TraceSource) -> String {
    let mut text = String::new();
    for event in events {
        let name = match event.kind {
            TraceEventKind::Lost { events } => format!("lost {events:?}"),
            _ => source.names().text(event.name).to_owned(),
        };
        text += &format!("{} {} {name}\n", event.at, event.cpu.0);
    }
    text
}
