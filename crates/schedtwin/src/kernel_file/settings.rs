//! From a kernel file's settings to a [`Config`].

use super::points;
use schedtwin_input::{Diagnostics, Located, TableReader, TomlDocument};
use schedtwin_kernel::config::{
    CfsTunables, Config, FairClass, Features, IdealRuntime, PmQos, RtBandwidth, Schedutil, TeoForm,
    TeoUtil,
};
use schedtwin_types::Ns;

/// A number within bounds.
fn bounded(
    reader: &mut TableReader<'_>,
    key: &str,
    min: u64,
    max: u64,
    faults: &mut Diagnostics,
) -> Option<u64> {
    let found: Located<u64> = reader.required(key, faults)?;
    if (min..=max).contains(&found.value) {
        return Some(found.value);
    }
    faults.push_at(&found.at, format!("`{key}` is {}, outside {min}..={max}", found.value), None);
    None
}

/// Description and configuration.
pub(super) fn read(document: &TomlDocument, faults: &mut Diagnostics) -> Option<(String, Config)> {
    let mut top = document.reader();
    let _name: Option<String> = top.required("name", faults);
    let description: Option<String> = top.required("description", faults);
    let hz = bounded(&mut top, "hz", 24, 10_000, faults);
    let preempt = points::PREEMPT.read(&mut top, faults);
    let irq_time_accounting = top.required("irq_time_accounting", faults);
    let cpufreq = points::CPUFREQ.read(&mut top, faults);
    let cpuidle = points::CPUIDLE.read(&mut top, faults);
    let teo = points::TEO.read(&mut top, faults);
    let teo_util = points::TEO_UTIL.read(&mut top, faults);
    refuse_foreign_util(document, teo, teo_util, faults);
    let teo_util_threshold_shift = bounded(&mut top, "teo_util_threshold_shift", 0, 10, faults);
    let menu = points::MENU.read(&mut top, faults);
    let haltpoll_shrink = points::HALTPOLL_SHRINK.read(&mut top, faults);
    let cpuidle_disable = read_cpuidle_disable(&mut top, faults);
    let pm_qos = top.required_table("pm_qos", faults).and_then(|mut table| {
        let cpu_latency_us = read_latency(&mut table, "cpu_latency_us", faults);
        let resume_latency_us = read_latency(&mut table, "resume_latency_us", faults);
        table.finish(faults);
        Some(PmQos { cpu_latency_us: cpu_latency_us?, resume_latency_us: resume_latency_us? })
    });
    let fair = points::FAIR.read(&mut top, faults);
    // One fault for a fair class whose tables are those of the other; theirs follow from it.
    let mut unheard = Diagnostics::new();
    let foreign = refuse_foreign_class(document, fair, faults);
    let migration_cost = bounded(&mut top, "migration_cost_ns", 0, 1_000_000_000, faults);
    let nr_migrate = bounded(&mut top, "nr_migrate", 1, 1024, faults);
    let effective_cpu_util = points::EFFECTIVE_CPU_UTIL.read(&mut top, faults);
    let util_est = points::UTIL_EST.read(&mut top, faults);
    let util_est_update = points::UTIL_EST_UPDATE.read(&mut top, faults);
    let init_util_weight = points::INIT_UTIL_WEIGHT.read(&mut top, faults);
    let tg_load_avg = points::TG_LOAD_AVG.read(&mut top, faults);
    let migrate_se_pelt_lag = points::MIGRATE_SE_PELT_LAG.read(&mut top, faults);
    let runnable_boost = points::RUNNABLE_BOOST.read(&mut top, faults);
    let energy_aware = top.required("energy_aware", faults);
    let find_energy_efficient_cpu = points::FIND_ENERGY_EFFICIENT_CPU.read(&mut top, faults);
    let em_cpu_energy = points::EM_CPU_ENERGY.read(&mut top, faults);
    let ttwu_queue_cond = points::TTWU_QUEUE_COND.read(&mut top, faults);
    let select_idle_cluster = points::SELECT_IDLE_CLUSTER.read(&mut top, faults);
    let balance_fair = points::BALANCE_FAIR.read(&mut top, faults);
    let prefer_sibling = points::PREFER_SIBLING.read(&mut top, faults);
    let sibling_imbalance = points::SIBLING_IMBALANCE.read(&mut top, faults);
    let pick_busiest_bigger = points::PICK_BUSIEST_BIGGER.read(&mut top, faults);
    let pick_busiest_full = points::PICK_BUSIEST_FULL.read(&mut top, faults);
    let pick_busiest_misfit = points::PICK_BUSIEST_MISFIT.read(&mut top, faults);
    let misfit_failure = points::MISFIT_FAILURE.read(&mut top, faults);
    let check_misfit_status = points::CHECK_MISFIT_STATUS.read(&mut top, faults);
    let misfit_status = points::MISFIT_STATUS.read(&mut top, faults);
    let rt_bandwidth = points::RT_BANDWIDTH.read(&mut top, faults);
    let rt_task = points::RT_TASK.read(&mut top, faults);
    let rt_runtime = read_rt_runtime(&mut top, faults);
    let rt_period = bounded(&mut top, "rt_period_us", 1_000, 4_000_000, faults);
    let uclamp = points::UCLAMP.read(&mut top, faults);
    let uclamp_min_rt_default = bounded(&mut top, "uclamp_min_rt_default", 0, 1024, faults);
    let uclamp_order = points::UCLAMP_ORDER.read(&mut top, faults);
    let cpu_map_package = points::CPU_MAP_PACKAGE.read(&mut top, faults);
    let sched_cluster = top.required("sched_cluster", faults);
    let fair_group_sched = top.required("fair_group_sched", faults);
    let timer_slack = bounded(&mut top, "timer_slack_ns", 0, 1_000_000_000, faults);
    let stat_interval = bounded(&mut top, "stat_interval_ms", 0, 120_000, faults);
    let schedutil = top.required_table("schedutil", faults).map(|mut table| {
        let limit = read_rate_limit(&mut table, faults);
        let default = points::RATE_LIMIT_DEFAULT.read(&mut table, faults);
        table.finish(faults);
        (limit, default)
    });
    let (rate_limit_us, rate_limit_default) = schedutil.unwrap_or_default();
    let fair_server = read_fair_server(&mut top, rt_bandwidth, faults);
    let of_class = if foreign { &mut unheard } else { &mut *faults };
    let cfs = read_cfs(&mut top, fair, of_class);
    let base_slice_unscaled = read_eevdf(&mut top, fair, of_class);
    let features = top
        .required_table("features", of_class)
        .and_then(|table| read_features(table, fair, of_class));
    // What is missing is told at the end.
    top.finish(if foreign { &mut unheard } else { faults });
    let (fair_server_runtime, fair_server_period) = fair_server?;
    let (cfs, ideal_runtime) = cfs?;
    let config = Config {
        hz: hz? as u32,
        preempt: preempt?,
        irq_time_accounting: irq_time_accounting?,
        cpufreq: cpufreq?,
        schedutil: Schedutil { rate_limit_us: rate_limit_us? },
        rate_limit_default: rate_limit_default?,
        effective_cpu_util: effective_cpu_util?,
        cpuidle: cpuidle?,
        teo: teo?,
        teo_util: teo_util?,
        teo_util_threshold_shift: teo_util_threshold_shift? as u32,
        menu: menu?,
        haltpoll_shrink: haltpoll_shrink?,
        cpuidle_disable: cpuidle_disable?,
        pm_qos: pm_qos?,
        fair: fair?,
        cfs,
        ideal_runtime,
        base_slice_unscaled: base_slice_unscaled?,
        features: features?,
        migration_cost: migration_cost?,
        nr_migrate: nr_migrate? as u32,
        util_est: util_est?,
        util_est_update: util_est_update?,
        init_util_weight: init_util_weight?,
        tg_load_avg: tg_load_avg?,
        migrate_se_pelt_lag: migrate_se_pelt_lag?,
        runnable_boost: runnable_boost?,
        energy_aware: energy_aware?,
        find_energy_efficient_cpu: find_energy_efficient_cpu?,
        em_cpu_energy: em_cpu_energy?,
        ttwu_queue_cond: ttwu_queue_cond?,
        select_idle_cluster: select_idle_cluster?,
        balance_fair: balance_fair?,
        prefer_sibling: prefer_sibling?,
        sibling_imbalance: sibling_imbalance?,
        pick_busiest_bigger: pick_busiest_bigger?,
        pick_busiest_full: pick_busiest_full?,
        pick_busiest_misfit: pick_busiest_misfit?,
        misfit_failure: misfit_failure?,
        check_misfit_status: check_misfit_status?,
        misfit_status: misfit_status?,
        rt_bandwidth: rt_bandwidth?,
        rt_task: rt_task?,
        rt_runtime: rt_runtime?,
        rt_period: rt_period? * 1000,
        fair_server_runtime,
        fair_server_period,
        uclamp: uclamp?,
        uclamp_min_rt_default: uclamp_min_rt_default? as u32,
        uclamp_order: uclamp_order?,
        cpu_map_package: cpu_map_package?,
        sched_cluster: sched_cluster?,
        fair_group_sched: fair_group_sched?,
        timer_slack: timer_slack?,
        stat_interval: stat_interval? * 1_000_000,
    };
    Some((description?, config))
}

/// `"driver"` or a number of microseconds.
fn read_rate_limit(table: &mut TableReader<'_>, faults: &mut Diagnostics) -> Option<Option<u64>> {
    let text: Located<String> = table.required("rate_limit_us", faults)?;
    if text.value == "driver" {
        return Some(None);
    }
    match text.value.parse::<u64>() {
        Ok(us) if us <= 10_000_000 => Some(Some(us)),
        _ => {
            let message = format!("`rate_limit_us` cannot be `{}`", text.value);
            let help = "microseconds up to 10000000, or `driver`: what follows from the driver's transition latency";
            faults.push_at(&text.at, message, Some(help.into()));
            None
        }
    }
}

/// `"none"` or a number of microseconds.
fn read_latency(
    table: &mut TableReader<'_>,
    key: &str,
    faults: &mut Diagnostics,
) -> Option<Option<u32>> {
    let text: Located<String> = table.required(key, faults)?;
    if text.value == "none" {
        return Some(None);
    }
    match text.value.parse::<u32>() {
        Ok(us) if us <= 2_000_000_000 => Some(Some(us)),
        _ => {
            let message = format!("`{key}` cannot be `{}`", text.value);
            let help = "microseconds up to 2000000000, 0 for no latency at all, or `none`";
            faults.push_at(&text.at, message, Some(help.into()));
            None
        }
    }
}

/// `"none"`, or names or numbers of idle states with `/` between them. Whether the machine has them is
/// checked where both are known.
fn read_cpuidle_disable(
    reader: &mut TableReader<'_>,
    faults: &mut Diagnostics,
) -> Option<Vec<String>> {
    let text: Located<String> = reader.required("cpuidle_disable", faults)?;
    if text.value == "none" {
        return Some(Vec::new());
    }
    let words: Vec<String> = text.value.split('/').map(|word| word.trim().to_string()).collect();
    if words.iter().any(String::is_empty) {
        let message = format!("`cpuidle_disable` cannot be `{}`", text.value);
        let help = "names or numbers of idle states: `C3`, `2` or `C3/C6`; or `none`";
        faults.push_at(&text.at, message, Some(help.into()));
        return None;
    }
    Some(words)
}

/// A way of looking at utilisation that the form of teo has no place for.
fn refuse_foreign_util(
    document: &TomlDocument,
    teo: Option<TeoForm>,
    util: Option<TeoUtil>,
    faults: &mut Diagnostics,
) {
    if let (Some(teo), Some(util)) = (teo, util)
        && !points::takes_util(teo, util)
    {
        let entry = |key| document.get(key).expect("it was read");
        let word = |key| match &entry(key).value {
            schedtwin_input::Value::String(word) => word.clone(),
            _ => String::new(),
        };
        let message =
            format!("teo of {} cannot look at utilisation as `{}`", word("teo"), word("teo_util"));
        let help = "all forms are for `teo = \"5.14\"`; 6.6 takes `off`, `6.3` and `gradual`, 6.12 `off` and `gradual`";
        faults.push_at(&entry("teo_util").at, message, Some(help.into()));
    }
}

/// Microseconds; −1: no limit.
fn read_rt_runtime(reader: &mut TableReader<'_>, faults: &mut Diagnostics) -> Option<Option<Ns>> {
    let found: Located<i64> = reader.required("rt_runtime_us", faults)?;
    match found.value {
        -1 => Some(None),
        us @ 1..=4_000_000 => Some(Some(us as u64 * 1000)),
        us => {
            let message = format!("`rt_runtime_us` is {us}, outside -1 (no limit), 1..=4000000");
            faults.push_at(&found.at, message, None);
            None
        }
    }
}

/// Runtime and period of the fair server; zero runtime where there is none.
fn read_fair_server(
    top: &mut TableReader<'_>,
    rt_bandwidth: Option<RtBandwidth>,
    faults: &mut Diagnostics,
) -> Option<(Ns, Ns)> {
    if points::has_fair_server(rt_bandwidth?) {
        let mut table = top.required_table("fair_server", faults)?;
        let runtime: Option<Located<u64>> = table.required("runtime_us", faults);
        let period = bounded(&mut table, "period_us", 1_000, 4_000_000, faults);
        table.finish(faults);
        let (runtime, period) = (runtime?, period?);
        if runtime.value > period {
            let message =
                format!("a runtime of {} us does not fit a period of {period} us", runtime.value);
            faults.push_at(&runtime.at, message, None);
            return None;
        }
        Some((runtime.value * 1000, period * 1000))
    } else {
        refuse_table(top, "fair_server", "rt_bandwidth = \"throttling\" has none", faults);
        Some((0, 1_000_000_000))
    }
}

/// A table that belongs to another arm.
fn refuse_table(top: &mut TableReader<'_>, key: &str, why: &str, faults: &mut Diagnostics) {
    if let Some(table) = top.optional_table(key, faults) {
        faults.push_at(table.location(), format!("`[{key}]` is not for this kernel: {why}"), None);
    }
}

/// Whether the file has the table of the other fair class only: `linux-6.12:fair=cfs`.
fn refuse_foreign_class(
    document: &TomlDocument,
    fair: Option<FairClass>,
    faults: &mut Diagnostics,
) -> bool {
    let Some(fair) = fair else { return false };
    let (class, other, kernel) = match points::is_cfs(fair) {
        true => ("cfs", "eevdf", "linux-6.3"),
        false => ("eevdf", "cfs", "linux-6.12"),
    };
    let foreign = document.get(class).is_none() && document.get(other).is_some();
    if foreign {
        let message = format!("`{class}` needs tunables of its own: `[{class}]` and features");
        let help =
            format!("start from `{kernel}` and set what differs, or copy `kernels/{kernel}.toml`");
        let at = &document.get("fair").expect("it was read").at;
        faults.push_at(at, message, Some(help));
    }
    foreign
}

fn read_cfs(
    top: &mut TableReader<'_>,
    fair: Option<FairClass>,
    faults: &mut Diagnostics,
) -> Option<(CfsTunables, IdealRuntime)> {
    if !points::is_cfs(fair?) {
        refuse_table(top, "cfs", "fair = \"eevdf\"", faults);
        return Some((CfsTunables::default(), IdealRuntime::SchedSlice));
    }
    let mut table = top.required_table("cfs", faults)?;
    let mut ns = |key: &str| bounded(&mut table, key, 10_000, 1_000_000_000, faults);
    let (latency, min) = (ns("latency_ns"), ns("min_granularity_ns"));
    let (wakeup, idle) = (ns("wakeup_granularity_ns"), ns("idle_min_granularity_ns"));
    let ideal_runtime = points::IDEAL_RUNTIME.read(&mut table, faults);
    table.finish(faults);
    let tunables = CfsTunables {
        latency: latency?,
        min_granularity: min?,
        wakeup_granularity: wakeup?,
        idle_min_granularity: idle?,
    };
    Some((tunables, ideal_runtime?))
}

fn read_eevdf(
    top: &mut TableReader<'_>,
    fair: Option<FairClass>,
    faults: &mut Diagnostics,
) -> Option<Ns> {
    if points::is_cfs(fair?) {
        refuse_table(top, "eevdf", "fair = \"cfs\"", faults);
        return Some(0);
    }
    let mut table = top.required_table("eevdf", faults)?;
    let slice = bounded(&mut table, "base_slice_unscaled_ns", 10_000, 1_000_000_000, faults);
    table.finish(faults);
    slice
}

/// The features of the chosen fair class and those of all.
fn read_features(
    mut table: TableReader<'_>,
    fair: Option<FairClass>,
    faults: &mut Diagnostics,
) -> Option<Features> {
    let cfs = points::is_cfs(fair?);
    // CFS kernels have it all; with EEVDF those before 6.8 only, whose util_est is of two numbers.
    let util_est_fastup = if cfs {
        table.required("util_est_fastup", faults)
    } else {
        table.optional("util_est_fastup", faults).or(Some(false))
    };
    macro_rules! features {
        (cfs: [$($cfs:ident),*], eevdf: [$($eevdf:ident),*], all: [$($all:ident),*]) => {{
            $(let $cfs: Option<bool> = if cfs { table.required(stringify!($cfs), faults) } else { Some(false) };)*
            $(let $eevdf: Option<bool> = if cfs { Some(false) } else { table.required(stringify!($eevdf), faults) };)*
            $(let $all: Option<bool> = table.required(stringify!($all), faults);)*
            table.finish(faults);
            let util_est_fastup = util_est_fastup?;
            Some(Features { $($cfs: $cfs?,)* $($eevdf: $eevdf?,)* $($all: $all?,)* util_est_fastup })
        }};
    }
    features!(
        cfs: [gentle_fair_sleepers, start_debit, next_buddy, last_buddy, alt_period, base_slice,
            sis_prop],
        eevdf: [place_lag, place_deadline_initial, place_rel_deadline, run_to_parity, preempt_short,
            delay_dequeue, delay_zero],
        all: [wakeup_preemption, cache_hot_buddy, ttwu_queue, sis_util, ni_random, wa_idle,
            wa_weight, wa_bias, util_est, nontask_capacity, rt_push_ipi]
    )
}
