//! `cargo bench`: W1 against the floor.

fn main() {
    schedtwin_benches::w1::report(10, 60);
}
