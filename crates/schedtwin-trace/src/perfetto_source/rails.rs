// SPDX-License-Identifier: GPL-2.0-or-later
//! Power rails (`android.power`): descriptions and counts become [`TraceHeader::rails`].

use super::messages::PowerRails;
use crate::event::{PowerRail, TraceHeader};
use std::collections::BTreeMap;

/// Rails that are kept.
const RAILS_MAX: usize = 256;

/// Which rail of the header an index means.
#[derive(Default)]
pub struct Rails {
    by_index: BTreeMap<u32, usize>,
}

impl Rails {
    /// Takes descriptions and counts; a description may come behind its counts.
    pub fn take(&mut self, rails: PowerRails, header: &mut TraceHeader) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for descriptor in rails.descriptors.iter().take(RAILS_MAX) {
            if let Some(rail) = self.rail(descriptor.index.unwrap_or(0), header) {
                rail.name = text(descriptor.name.as_deref().unwrap_or_default());
                rail.subsystem = text(descriptor.subsystem.as_deref().unwrap_or_default());
            }
        }
        for count in &rails.counts {
            if let (Some(ms), Some(uws)) = (count.timestamp_ms, count.energy_uws)
                && let Some(rail) = self.rail(count.index.unwrap_or(0), header)
            {
                rail.count(ms, uws);
            }
        }
    }

    fn rail<'h>(&mut self, index: u32, header: &'h mut TraceHeader) -> Option<&'h mut PowerRail> {
        let place = match self.by_index.get(&index) {
            Some(place) => *place,
            None if header.rails.len() == RAILS_MAX => return None,
            None => {
                header.rails.push(PowerRail::default());
                self.by_index.insert(index, header.rails.len() - 1);
                header.rails.len() - 1
            }
        };
        header.rails.get_mut(place)
    }
}
