// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables are what the runs measured, whole and in order, and comparisons of them are those of the laboratory.

use schedtwin::{Duration, Experiment, GivenKernel, KernelFile, Kind, Progress, Query, Table};
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_lab::compare::{Plan, compare};
use schedtwin_lab::stopping::Iterations;
use schedtwin_lab::twin::{Column, joint_provenance};
use serde_json::Value;

const KERNELS: [&str; 2] = ["linux-6.12", "linux-6.12:hz=1000"];

fn small() -> Experiment {
    Experiment::new()
        .machines(["uniform8", "pixel6"])
        .kernels(KERNELS)
        .workloads(["w1", "periodic"])
        .seeds(3..=4)
        .duration(Duration::from_ms(20))
}

#[test]
fn a_table_has_what_each_run_measured() {
    let table = small().run().unwrap();
    assert_eq!(table.runs().len(), 16);
    assert_eq!(small().runs(), 16);
    assert_eq!(table.crashes().len(), 0);
    assert_eq!(table.rows().len(), table.len());
    let run = &table.runs()[5];
    let named = (run.machine.as_str(), run.workload.as_str(), run.seed, run.kernel.as_str());
    assert_eq!(named, ("uniform8", "periodic", 3, KERNELS[1]));
    let scenario = Scenario::new("uniform8", KERNELS[1], "periodic", Some(20_000_000)).unwrap();
    let alone = scenario.run(3, RunOptions::default()).unwrap();
    assert_eq!(run.digest, alone.digest);
    let rows: Vec<_> = table.rows().filter(|row| std::ptr::eq(row.run(), run)).collect();
    assert_eq!(rows.len(), alone.metrics.len());
    for (row, metric) in rows.iter().zip(&alone.metrics) {
        assert_eq!(
            (row.metric(), row.stat(), row.labels()),
            (metric.name, metric.stat, &metric.labels)
        );
        assert_eq!(row.value(), metric.value);
    }
    assert_eq!(small().run().unwrap(), table, "the same experiment, the same table");
}

#[test]
fn a_comparison_of_a_table_is_the_laboratorys() {
    let table = small().run().unwrap();
    let columns: Vec<Column> = KERNELS
        .iter()
        .map(|kernel| Scenario::new("pixel6", kernel, "w1", Some(20_000_000)).unwrap())
        .map(Column::new)
        .collect();
    let plan = Plan { first_seed: 3, iterations: Iterations::Fixed(2) };
    let expected = compare(&columns, &plan, joint_provenance(&columns), &Progress::new()).unwrap();
    let found = table.comparison("pixel6", "w1").unwrap();
    assert_eq!(found.as_lab(), &expected);
    assert!(table.comparison("pixel6", "w2").is_none());
}

#[test]
fn columns_are_as_long_as_the_table() {
    let table = small().run().unwrap();
    let Value::Object(columns) = serde_json::to_value(&table).unwrap() else { panic!("a map") };
    for (name, column) in &columns {
        assert_eq!(column.as_array().unwrap().len(), table.len(), "{name}");
    }
    for (at, row) in table.rows().enumerate().step_by(97) {
        assert_eq!(columns["metric"][at], row.metric());
        assert_eq!(columns["value"][at].as_f64(), row.value());
        assert_eq!(columns["kind"][at], row.kind().word());
        for (key, value) in row.labels() {
            assert_eq!(columns["labels"][at][key], **value);
        }
    }
}

fn sum_of_domains(table: &Table) -> f64 {
    let of_domains =
        table.rows().filter(|row| row.metric() == "power" && row.label("domain").is_some());
    of_domains.filter(|row| row.kind() == Kind::One).filter_map(|row| row.value()).sum()
}

#[test]
fn many_parts_are_summed_up_beside_themselves() {
    let one = |machine: &str| {
        let experiment =
            Experiment::new().machine(machine).kernel("linux-6.12").workload("periodic");
        experiment.seeds(1..=1).duration(Duration::from_ms(20)).run().unwrap()
    };
    let table = one("altra-2p160");
    let kinds = |kind: &str| {
        let rows = table.rows().filter(|row| (row.metric(), row.kind().word()) == ("power", kind));
        rows.filter(|row| kind != "one" || row.label("domain").is_some()).count()
    };
    assert_eq!(["one", "mean", "lowest", "highest"].map(kinds), [160, 1, 1, 1]);
    let mean = table.select("power,row=mean").unwrap().next().unwrap();
    assert_eq!((mean.kind().to_string(), mean.labels().len()), ("mean of 160 domains".into(), 0));
    let expected = sum_of_domains(&table) / 160.0;
    assert!((mean.value().unwrap() - expected).abs() < 1e-9 * expected);
}

#[test]
fn faults_come_all_at_once() {
    let wrong = Experiment::new().machine("pixel7").kernel("linux-6.12:hz=0").workload("ui-fone");
    let text = wrong.run().unwrap_err().to_string();
    for part in ["there is no machine `pixel7`", "`hz` is 0", "ui-fone"] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
    let nothing = Experiment::new().check().unwrap_err().to_string();
    assert!(nothing.contains("machines") && nothing.contains("kernels"), "{nothing}");
    #[expect(clippy::reversed_empty_ranges, reason = "what a caller may get wrong")]
    let backwards = small().seeds(2..=1).check().unwrap_err().to_string();
    assert!(backwards.contains("an experiment has seeds"), "{backwards}");
}

#[test]
fn kernels_at_hand_are_kernels() {
    let file = KernelFile::load("linux-6.12:hz=100").unwrap();
    let kernels = [GivenKernel::from("linux-6.12:hz=100"), GivenKernel::from(file)];
    let experiment = Experiment::new().machine("uniform8").kernels(kernels).workload("w1");
    let experiment = experiment.seeds(1..=1).duration(Duration::from_ms(20));
    let table = experiment.run().unwrap();
    assert_eq!(table.runs()[0].digest, table.runs()[1].digest);
    assert!(experiment.first_difference().unwrap().is_none());
}

#[test]
fn an_explanation_tells_what_was_asked() {
    let experiment = small();
    let query = Query { task: Some("job-3".into()), limit: 30, ..Query::default() };
    let told = experiment.explain(&query).unwrap();
    assert!(!told.entries().is_empty() && told.entries().len() <= 30);
    assert!(told.to_string().contains("job-3"), "{told}");
    assert!(told.difference().is_none());
    let parting = experiment.first_difference().unwrap().unwrap();
    let difference = parting.difference().unwrap();
    assert!(parting.to_string().contains(difference.left.trim()), "{parting}");
    let json = serde_json::to_value(&parting).unwrap();
    assert_eq!(json["difference"]["at_ns"], difference.at);
}

/// A program never loads C of a tree: a confined process does, and the results are the same in each way.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn c_of_a_tree_runs_in_another_process() {
    if std::process::Command::new("cc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no C compiler");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let governors = folder.path().join("drivers/cpuidle/governors");
    std::fs::create_dir_all(&governors).expect("made");
    let governor = |line: &str| {
        format!(
            "#include <linux/cpuidle.h>\nstatic int asked;\n\
             static int small_select(struct cpuidle_driver *drv, struct cpuidle_device *dev, bool *stop_tick)\n\
             {{\n\t{line}\n\treturn asked++ % 2;\n}}\n\
             static struct cpuidle_governor small = {{ .name = \"small\", .select = small_select }};\n\
             static int __init init_small(void) {{ return cpuidle_register_governor(&small); }}\n\
             postcore_initcall(init_small);\n"
        )
    };
    std::fs::write(governors.join("small.c"), governor("")).expect("written");
    let kernel = format!("linux-6.12:tree={},cpuidle=tree/small.c", folder.path().display());
    let base = || {
        let base = Experiment::new().machine("uniform8").workload("w1").seeds(1..=2);
        base.duration(Duration::from_ms(20))
    };
    let experiment = |kernel: &str| base().kernels(["linux-6.12", kernel]);
    let one = experiment(&kernel);
    let (table, again) = (one.run().expect("it runs"), one.run().expect("it runs"));
    assert_eq!(table.runs().len(), 4);
    assert_eq!(table, again);
    let alone = experiment("linux-6.12:hz=1000").run().expect("it runs here");
    assert_eq!(table.runs()[0].digest, alone.runs()[0].digest, "the same in either process");
    assert!(one.first_difference().expect("it runs").is_some());
    assert!(one.page(&table).expect("it runs").contains("<html"));
    let mine = base().kernel(kernel.as_str());
    assert!(!mine.events("sched_switch").expect("it runs").is_empty());
    assert!(mine.run_text().expect("it runs").contains("power"));
    let record = folder.path().join("a.record.jsonl");
    mine.write(&record).expect("it runs");
    assert!(std::fs::metadata(&record).expect("it is there").len() > 1000);
    assert!(mine.explain(&Query { limit: 5, ..Query::default() }).is_ok());
    // C that ends the process ends no program.
    let end = "__asm__ volatile(\"ud2\");";
    std::fs::write(governors.join("bad.c"), governor(end)).expect("written");
    let bad = kernel.replace("small.c", "bad.c");
    let error = experiment(&bad).run().expect_err("it crashes").to_string();
    assert!(error.contains("bad.c of") && error.contains("crashed"), "{error}");
}
