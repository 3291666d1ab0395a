// SPDX-License-Identifier: GPL-2.0-or-later
//! Scheduling domains as pictures: a lane for each level, a box for each domain, cut into its groups.
//!
//! CPUs are not in the order of their numbers but so that each domain is in one piece: threads of a core stand beside
//! each other.

use maud::{Markup, html};
use schedtwin_engine::{DomainRow, DomainTable, flag_names};
use schedtwin_types::{CpuId, CpuMask};

use super::figures::{WIDTH, at};
use crate::report::cells::letter;

/// Domains of a level that overlap have a lane each, up to so many.
const LANES: usize = 8;

/// The domains of all kernels, once for those that have the same; nothing where there is one CPU.
pub fn all(kernels: &[String], tables: &[DomainTable]) -> Markup {
    let mut distinct: Vec<(&DomainTable, Vec<usize>)> = Vec::new();
    for (kernel, table) in tables.iter().enumerate() {
        match distinct.iter_mut().find(|(known, _)| *known == table) {
            Some((_, whose)) => whose.push(kernel),
            None => distinct.push((table, vec![kernel])),
        }
    }
    distinct.retain(|(table, _)| !table.levels.is_empty());
    if distinct.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Scheduling domains" }
        @for (table, whose) in &distinct {
            @if whose.len() < kernels.len() {
                p.caption { @for kernel in whose { b { (letter(*kernel)) } " " (kernels[*kernel]) " " } }
            }
            (picture(table))
        }
        p.legend { "A box is a domain, its parts are the groups that balancing compares; the darker share a cache. Hover for flags. "
            "The text is printed by schedtwin show machine NAME -k KERNEL." }
    }
}

fn picture(table: &DomainTable) -> Markup {
    let order = order(table);
    let width = WIDTH / order.len() as f64;
    // Between domains there is more space than between groups.
    let gap = (0.2 * width).min(3.0);
    html! {
        div.lanes {
            @for level in &table.levels {
                @let lanes = lanes(&level.domains);
                @for (number, lane) in lanes.iter().take(LANES).enumerate() {
                    div.muted { @if number == 0 { (level.name) } }
                    svg viewBox="0 0 1000 20" height="18" preserveAspectRatio="none" role="img" aria-label=(level.name) {
                        rect.track x="0" y="0" width="1000" height="20" {}
                        @for domain in lane {
                            @for [from, to] in runs(&order, &domain.span) {
                                rect x=(at(from as f64 * width + gap)) y="2" width=(at((to - from) as f64 * width - 2.0 * gap)) height="16"
                                    fill="var(--seq)" fill-opacity=(if shares_cache(domain) { "0.8" } else { "0.4" })
                                    { title { (title(level.name, domain)) } }
                            }
                            @for cut in cuts(&order, domain) {
                                line.groups x1=(at(cut as f64 * width)) y1="2" x2=(at(cut as f64 * width)) y2="18" {}
                            }
                        }
                    }
                }
                @if lanes.len() > LANES {
                    div {} div.muted { "and " (lanes.len() - LANES) " more domains that overlap" }
                }
            }
            div {}
            div.axis { span { "CPU " (order[0]) } span { "CPU " (order[order.len() - 1]) } }
        }
    }
}

fn shares_cache(domain: &DomainRow) -> bool {
    flag_names(domain.flags).contains(&"SHARE_LLC")
}

fn title(level: &str, domain: &DomainRow) -> String {
    let groups: Vec<String> = domain.groups.iter().map(|group| group.span.to_string()).collect();
    let flags = flag_names(domain.flags).join(" ");
    format!(
        "{level} {}, flags {:#x} {flags}, imbalance_pct {}, groups {}",
        domain.span,
        domain.flags,
        domain.imbalance_pct,
        groups.join(" | ")
    )
}

/// The CPUs, those of a domain beside each other as far as domains nest.
fn order(table: &DomainTable) -> Vec<CpuId> {
    let mut cpus: Vec<CpuId> =
        table.pointers.iter().flat_map(|row| row.cpus.iter().collect::<Vec<_>>()).collect();
    // From the largest domain to the smallest: the first of its CPUs.
    cpus.sort_by_cached_key(|cpu| {
        let own = |domains: &[DomainRow]| {
            let of_cpu = domains.iter().find(|domain| domain.cpus.contains(*cpu));
            of_cpu.and_then(|domain| domain.cpus.lowest())
        };
        let path: Vec<_> = table.levels.iter().rev().map(|level| own(&level.domains)).collect();
        (path, *cpu)
    });
    cpus
}

/// Domains that do not overlap share a lane.
fn lanes(domains: &[DomainRow]) -> Vec<Vec<&DomainRow>> {
    let mut lanes: Vec<(CpuMask, Vec<&DomainRow>)> = Vec::new();
    for domain in domains {
        match lanes.iter_mut().find(|(taken, _)| !taken.intersects(&domain.span)) {
            Some((taken, lane)) => {
                *taken = taken.or(&domain.span);
                lane.push(domain);
            }
            None => lanes.push((domain.span, vec![domain])),
        }
    }
    lanes.into_iter().map(|(_, lane)| lane).collect()
}

/// Where CPUs of a set stand: from which place to before which.
fn runs(order: &[CpuId], span: &CpuMask) -> Vec<[usize; 2]> {
    let mut runs: Vec<[usize; 2]> = Vec::new();
    for place in (0..order.len()).filter(|place| span.contains(order[*place])) {
        match runs.last_mut() {
            Some([_, to]) if *to == place => *to += 1,
            _ => runs.push([place, place + 1]),
        }
    }
    runs
}

/// Where a group ends within a domain.
fn cuts(order: &[CpuId], domain: &DomainRow) -> Vec<usize> {
    let ends = domain.groups.iter().flat_map(|group| runs(order, &group.span));
    let mut cuts: Vec<usize> = ends.map(|[_, to]| to).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let inside = |place: &usize| order.get(*place).is_some_and(|cpu| domain.span.contains(*cpu));
    cuts.retain(inside);
    cuts
}
