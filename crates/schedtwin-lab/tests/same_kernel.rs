// SPDX-License-Identifier: GPL-2.0-or-later
//! The twin compared with itself: the seeds must be as different as two days in a laboratory are, and the
//! test must call a difference significant in one comparison of twenty.

use schedtwin_engine::Scenario;
use schedtwin_lab::Progress;
use schedtwin_lab::aa::calibrate;
use schedtwin_lab::twin::Column;

#[test]
fn one_of_twenty_differences_between_equal_kernels_is_significant() {
    let kernel = "linux-6.12".to_string();
    let scenario =
        Scenario::new("pixel6", &kernel, "ui-phone", Some(60_000_000)).expect("built in");
    let column = Column { kernel, scenario };
    let calibration = calibrate(&column, 1, 200, 10, &Progress::new()).expect("nothing is written");
    // Hundreds of metrics, many of them counts of few events whose ties make the tests cautious.
    let overall = &calibration.overall;
    for share in [overall.paired_share(), overall.welch_share()] {
        assert!((0.03..=0.07).contains(&share), "{overall:?}");
    }
    // One continuous metric: 200 comparisons at 5 % lie between 1 % and 9 % but once in a hundred times.
    let power = calibration.metrics.iter().find(|m| m.metric == "power mean").expect("measured");
    assert_eq!(power.comparisons, 200, "power differs from seed to seed");
    for share in [power.paired_share(), power.welch_share()] {
        assert!((0.01..=0.09).contains(&share), "{power:?}");
    }
}
