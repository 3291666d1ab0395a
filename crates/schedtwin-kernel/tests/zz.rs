mod harness;
use harness::*;
#[test]
fn zz() {
    let mut b = Board::with(device_tree(1), schedtwin_kernel::config::Config { base_slice_unscaled: 2_800_000, ..config() }, 
        "h @0: [run 1s]
         w @0: nice -5, run 100us, until 10ms, run 1ms, [sleep 1s]
         x @0: fifo 1, until 9900us, run 10us, [sleep 1s]");
    for at in [3,5,9,9901,9950,10001,10500] {
        let at = if at < 100 { at * MS } else { at * 1000 };
        b.run_until(at);
        for n in ["h","w"] { let se=b.se(n); println!("{at} {n} v {} d {} vlag {} slice {} delayed {} on {}", se.vruntime as i64, se.deadline as i64, se.vlag, se.slice, se.sched_delayed, se.on_rq); }
    }
    println!("{}", b.switch_list(0));
}
