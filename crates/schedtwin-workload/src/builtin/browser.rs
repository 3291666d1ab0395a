// SPDX-License-Identifier: GPL-2.0-or-later
//! A browser: the renderer's main thread and those that serve it.
//!
//! ```text
//! who asks ── Chrome_IOThread ── CrRendererMain ══ pieces of work ══ Chrome_IOThread ── who asks
//!                                     │ every piece
//!                                     └── Compositor ── ThreadPoolForeg ─┐
//!                                              └──────  ThreadPoolForeg ─┴─ VizCompositorTh ── CrGpuMain
//! ```
//!
//! Chromium runs scripts, styles and layout of a page on one thread; it hands what is to be painted to the compositor's
//! thread, which has tiles drawn by a pool and the frame put together by the display compositor, whose commands a thread of
//! the GPU process issues [S: Chromium's documentation]. Messages between processes go through threads of their own.
//!
//! All shares of work are estimates [E]: a piece of the main thread's work is followed by a fifth of it on the helpers.
//! With hints (`super::hints`) Chromium's session holds the renderer's main thread, its compositor, the display compositor and the GPU
//! process's thread [S: its ADPF code]. What it reports is [E]: here each piece of the main thread's work, which a frame waits for.
//!
//! Differences: no JIT or garbage collector threads; the main thread never waits for a helper.

use super::amount::Amount;
use super::measured::burst;
use super::script::{Flag, Register, Script, Step, nice};
use schedtwin_types::Ns;

/// Pieces of a task of the main thread, after each of which something is painted.
const PIECES: u64 = 8;

/// The interface of the browser for other parts of the script.
pub(super) struct Browser {
    /// Something is to be done: so much work, nanoseconds at capacity 1024.
    pub work: Register,
    /// It begins, and it has been done.
    pub ask: Flag,
    pub done: Flag,
}

/// Adds a browser's threads to a script. `hint_target`: how long a piece of the main thread may take, where the renderer and who
/// paints for it have a session of hints.
pub(super) fn add(script: &mut Script, hint_target: Option<Ns>) -> Browser {
    let session = hint_target.map(|target| script.session(target));
    let browser = Browser { work: script.register(0), ask: script.flag(0), done: script.flag(0) };
    let [main, answer, paint, tile, viz, gpu] = std::array::from_fn(|_| script.flag(0));
    let [counter, answers] = std::array::from_fn(|_| script.register(0));
    let message = Step::Work(burst(20_000));
    script
        .thread("Chrome_IOThread", nice(-4))
        .of("browser")
        .then(&[Step::Wait(browser.ask), message])
        .either(
            answers,
            |answered| answered.then(&[Step::Take(answers), Step::Post(browser.done)]),
            |asked| asked.then(&[Step::Post(main)]),
        )
        .for_ever();
    script
        .thread("CrRendererMain", nice(-10))
        .of("renderer")
        .then(&[Step::Wait(main)])
        .times(counter, PIECES, |piece| {
            piece
                .hints(session, |session| [Step::HintBegin(session), Step::HintTake(session)])
                .then(&[Step::WorkShare(browser.work, 100 / PIECES)])
                .hints(session, |session| [Step::HintEnd(session), Step::HintTake(session)])
                .then(&[Step::Raise(paint)])
        })
        .then(&[Step::WorkShare(browser.work, 100 % PIECES)])
        .then(&[Step::Add(answers, 1), Step::Post(browser.ask), Step::Raise(answer)])
        .for_ever();
    // An eighth of the work a piece; a fifth of that, on four threads.
    let share = |percent_of_piece: u64| Step::WorkShare(browser.work, percent_of_piece);
    script
        .thread("Compositor", nice(-10))
        .of("renderer")
        .then(&[Step::Wait(paint)])
        .hints(session, |session| [Step::HintTake(session)])
        .then(&[share(1), Step::Post(tile), Step::Post(tile), Step::Post(viz)])
        .for_ever();
    for _ in 0..2 {
        script
            .thread("ThreadPoolForeg", nice(0))
            .of("renderer")
            .then(&[Step::Wait(tile), share(1)])
            .for_ever();
    }
    script
        .thread("VizCompositorTh", nice(-10))
        .of("gpu")
        .then(&[Step::Wait(viz)])
        .hints(session, |session| [Step::HintTake(session)])
        .then(&[Step::Work(burst(60_000)), Step::Post(gpu)])
        .for_ever();
    script
        .thread("CrGpuMain", nice(-10))
        .of("gpu")
        .then(&[Step::Wait(gpu)])
        .hints(session, |session| [Step::HintTake(session)])
        .then(&[Step::Work(burst(150_000))])
        .for_ever();
    // The browser process hears of what was loaded.
    script
        .thread(".android.chrome", nice(-10))
        .of("browser")
        .then(&[Step::Wait(answer), Step::Work(Amount::Uniform(50_000, 250_000))])
        .for_ever();
    browser
}
