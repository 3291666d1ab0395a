// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads `[[dependent]]`: power of one domain that depends on the clock of another.
//!
//! Cores that share a cache share its supply, and the fastest of them decides how high that is. So a slow
//! core at a given frequency draws more while a fast one runs fast. Measured curves then have a second
//! dimension:
//!
//! ```toml
//! [[dependent]]
//! domain = "little"
//! on = "mid"
//! rows = [ # one for each operating point of `domain`; in each list a value for each of `on`, from the lowest
//!   { khz = 300_000, active_uw = [21_840, 18_970], wfi_uw = [470, 990], static_uw = [3_730, 5_660] },
//!   { khz = 574_000, active_uw = [35_850, 36_540], wfi_uw = [930, 980], static_uw = [5_730, 5_410] },
//! ]
//! ```
//!
//! A list may end early, where the pair of frequencies cannot occur (a coupled clock); should it occur,
//! the last value counts.
//!
//! Which domain counts, as in Wattson:
//!
//! 1. A domain **votes** while at least one of its CPUs executes; its vote is the `active_uw` of its
//!    operating point.
//! 2. The largest vote of those that a domain depends on chooses table and column; of equal ones the first.
//! 3. While nobody votes, the first table's first column counts.
//! 4. The `static_uw` of a dependent domain is drawn while any CPU of it *or of those it depends on* is not
//!    in a deep state: it is the shared part's.
//!
//! References: Perfetto, `wattson/cpu/w_cpu_dependence.sql` and `wattson/curves/utils.sql`.

use schedtwin_input::{Diagnostics, Located, TableReader};
use schedtwin_types::{ClockDomainId, Khz};

use crate::FrequencyDomain;
use crate::domain::{MAX_KHZ, MAX_UW};
use crate::keys::{keys, list, upto};

/// The largest energy of an access, pJ.
const MAX_PJ: u64 = 1_000_000;

/// The power that a domain draws, depending on others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerDependence {
    /// The domain whose power it is.
    pub domain: ClockDomainId,
    /// On whom it depends, in the order of the file; at least one.
    pub tables: Vec<DependenceTable>,
}

/// The part of a [`PowerDependence`] that one other domain has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependenceTable {
    /// The domain whose clock counts.
    pub on: ClockDomainId,
    /// By operating point of the dependent domain, then by that of `on`; complete.
    pub rows: Vec<Vec<DependentPower>>,
}

/// Powers at a pair of operating points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DependentPower {
    /// Of one busy CPU, µW.
    pub active_uw: u64,
    /// Of one CPU in WFI, µW.
    pub wfi_uw: u64,
    /// Of the domain, µW.
    pub static_uw: u64,
    /// Energy of an access to the shared cache that hits, and of one that misses, pJ; 0 where the file does not say.
    pub l3_pj: [u64; 2],
}

keys! {
    /// power of one domain that depends on the clock of another
    struct DependentKeys in "dependent[]" {
        /// the domain whose power depends: the NAME of a `[domain.NAME]`
        domain: Located<String> = Always, Text;
        /// the domain on whose clock it depends
        on: Located<String> = Always, Text;
    }
}

keys! {
    /// one row for each operating point of `domain`; each list has a value for each operating point of `on`, and
    /// may be shorter
    struct RowKeys in "dependent[].rows[]" {
        /// frequency of `domain`
        khz: Located<Khz> = Always, Whole(1, MAX_KHZ.into());
        /// power of one busy CPU, measured, as in `opp`
        active_uw: Vec<Located<u64>> = Always, list(upto(MAX_UW));
        /// power of one CPU in WFI, measured, as in `opp`
        wfi_uw: Vec<Located<u64>> = Always, list(upto(MAX_UW));
        /// power of the domain itself, as in `opp`
        static_uw: Vec<Located<u64>> = Always, list(upto(MAX_UW));
        /// energy of an access to the shared cache that hits, see `[l3]`; 0
        l3_hit_pj: Vec<Located<u64>> = May, list(upto(MAX_PJ));
        /// energy of an access that misses; 0
        l3_miss_pj: Vec<Located<u64>> = May, list(upto(MAX_PJ));
    }
}

/// Reads all tables. `domain_named` finds a domain, or notes why it cannot.
pub(crate) fn read(
    tables: Vec<TableReader<'_>>,
    domains: &[&FrequencyDomain],
    mut domain_named: impl FnMut(&Located<String>, &mut Diagnostics) -> Option<ClockDomainId>,
    faults: &mut Diagnostics,
) -> Vec<PowerDependence> {
    let mut out: Vec<PowerDependence> = Vec::new();
    for mut table in tables {
        let at = table.location().clone();
        let DependentKeys { domain, on } = DependentKeys::read(&mut table, faults);
        let rows = table.tables("rows", faults);
        let rows: Vec<_> = rows.into_iter().map(|row| read_row(row, faults)).collect();
        table.finish(faults);
        let domain = domain.and_then(|name| domain_named(&name, faults));
        let on = on.and_then(|name| domain_named(&name, faults));
        let (Some(domain), Some(on)) = (domain, on) else { continue };
        if domain == on {
            faults.push_at(&at, "a domain's own clock is no dependence", None);
            continue;
        }
        let had = faults.0.len();
        let rows = complete(rows, domains[domain.index()], domains[on.index()], &at, faults);
        let known = out.iter().position(|d| d.domain == domain);
        if known.is_some_and(|known| out[known].tables.iter().any(|t| t.on == on)) {
            faults.push_at(&at, "this dependence is written twice", None);
        }
        if faults.0.len() > had {
            continue;
        }
        let table = DependenceTable { on, rows };
        match known {
            Some(known) => out[known].tables.push(table),
            None => out.push(PowerDependence { domain, tables: vec![table] }),
        }
    }
    out
}

/// A row as written.
struct Row {
    khz: Located<Khz>,
    /// Active, WFI, static.
    powers: [Vec<Located<u64>>; 3],
    /// Hit, miss; empty where the file does not say.
    l3: [Vec<Located<u64>>; 2],
}

fn read_row(mut row: TableReader<'_>, faults: &mut Diagnostics) -> Option<Row> {
    let keys = RowKeys::read(&mut row, faults);
    row.finish(faults);
    let l3 = [keys.l3_hit_pj.unwrap_or_default(), keys.l3_miss_pj.unwrap_or_default()];
    Some(Row { khz: keys.khz?, powers: [keys.active_uw?, keys.wfi_uw?, keys.static_uw?], l3 })
}

/// A row for each operating point of `domain`, each as long as `on` has operating points.
fn complete(
    rows: Vec<Option<Row>>,
    domain: &FrequencyDomain,
    on: &FrequencyDomain,
    at: &schedtwin_input::Location,
    faults: &mut Diagnostics,
) -> Vec<Vec<DependentPower>> {
    if rows.len() != domain.opps.len() {
        let (have, want) = (rows.len(), domain.opps.len());
        let message = format!("rows: {have}; operating points of `{}`: {want}", domain.name);
        faults.push_at(at, message, None);
        return Vec::new();
    }
    let mut out = Vec::new();
    for (row, opp) in rows.into_iter().zip(&domain.opps) {
        let Some(row) = row else { continue };
        if row.khz.value != opp.khz {
            let message = format!("{} kHz, where `{}` has {}", row.khz.value, domain.name, opp.khz);
            let help = Some("rows follow the operating points".into());
            faults.push_at(&row.khz.at, message, help);
        }
        let count = row.powers[0].len();
        if count == 0 || count > on.opps.len() || row.powers.iter().any(|p| p.len() != count) {
            let message = format!(
                "the lists have {}, {} and {} values",
                count,
                row.powers[1].len(),
                row.powers[2].len()
            );
            let help = format!("equally many, 1 to {}: `{}` has so many", on.opps.len(), on.name);
            faults.push_at(&row.khz.at, message, Some(help));
            continue;
        }
        for value in row.powers.iter().flatten().filter(|v| v.value > MAX_UW) {
            faults.push_at(&value.at, "more than a kilowatt", Some("powers are in µW".into()));
        }
        if row.l3.iter().any(|list| !list.is_empty() && list.len() != count) {
            let message = "the lists of the shared cache are not as long as the others";
            faults.push_at(&row.khz.at, message, None);
            continue;
        }
        for value in row.l3.iter().flatten().filter(|v| v.value > MAX_PJ) {
            let help = Some("energies of an access are in pJ".into());
            faults.push_at(&value.at, "more than a microjoule", help);
        }
        let power = |column: usize| {
            let [active_uw, wfi_uw, static_uw] =
                [0, 1, 2].map(|which: usize| row.powers[which][column.min(count - 1)].value);
            let at = column.min(count - 1);
            let l3_pj = [0, 1].map(|which: usize| row.l3[which].get(at).map_or(0, |v| v.value));
            DependentPower { active_uw, wfi_uw, static_uw, l3_pj }
        };
        out.push((0..on.opps.len()).map(power).collect());
    }
    out
}
