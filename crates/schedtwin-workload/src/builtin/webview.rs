// SPDX-License-Identifier: GPL-2.0-or-later
//! A page in a web view: Android's browser engine inside of an app, which draws what the page shows with its own frames.
//!
//! ```text
//! vsync ── UI thread ── begin ──> Chrome_ChildIOT ── Compositor ══> CrRendererMain   a frame's work, or a piece of a part
//!             │   └── waits ...... Chrome_IOThread <──┘ reply          ║ commit: three hand-overs, then tiles
//!             ├── demand ───────> Chrome_ChildIOT ── Compositor ── Chrome_IOThread ──> RenderThread waits for the frame
//!             └── RenderThread ── VizWebView ── RenderThread ── VizWebView ── ...      puts it together, with tasks for each other
//! who asks ── Chrome_IOThread ── CrRendererMain ══ pieces ══> Chrome_IOThread ── UI thread ── who asked
//! ```
//!
//! **What is known** [S: Chromium's sources: the synchronous compositor of Android's web view and its display compositor]. At a vsync the
//! app's UI thread tells the renderer's compositor of the frame, and before it leaves the frame it waits until that has said what it
//! will do; the answer comes through the app's IO thread. When the view is drawn, it demands what the page shows, without waiting;
//! RenderThread waits for it, again through the IO thread, and has a thread of its own (`VizWebView`) put the frame together, waiting
//! while that works and running the tasks that it gives back. A page's scripts, styles and layout are one thread's, which
//! begins with what has changed when its compositor tells it of a frame, and waits while the two hand over; what is painted is
//! drawn by a pool. That a part of the page is done, the app hears on its UI thread.
//!
//! **Numbers** are of Chromium 150, headless, on an x86 server of two CPUs, while it rendered a page with twelve pictures, scrolled it
//! for 2 s, zoomed into a picture for 1 s, read 4,000 records, searched them with five characters, and added a picture, eight times
//! over [S]. In a second of scrolling CrRendererMain was woken 210 times (median of eight), nine of ten times by the compositor: at the
//! begin of a frame, and three times more for some microseconds each, while the two hand over. Half of its bursts were of
//! 8 us or less, a tenth of 0.36 to 0.46 ms or more, the work of a frame. Times of that machine count as work at capacity 1024 [E]: a
//! Cortex-X1 takes longer, by an unknown factor, which is a parameter ([`Work`]).
//!
//! Differences: there is one renderer; no thread of JavaScript's compiler and garbage collector; the main thread never waits for a tile.

use super::amount::Amount;
use super::display::{Display, Page};
use super::measured::burst;
use super::script::{Flag, Register, Script, Step, nice};

/// Hand-overs between main thread and compositor after the frame's own work. [S]
const HANDOVERS: u64 = 3;
/// Work of the network's thread for a piece, per cent of the main thread's, and how long the data take. [E]
const NETWORK: u64 = 5;
const DATA: Amount = Amount::Uniform(500_000, 1_500_000);

/// Work of the page's threads, per cent.
pub(super) struct Work {
    /// Of the main thread for a frame while nothing is loaded, of the recorded.
    pub frame: u64,
    /// Of the compositors for a frame, of the recorded.
    pub compositors: u64,
    /// Of the pool for a piece, of the main thread's.
    pub raster: u64,
}

/// The interface of the page for other parts of the script.
pub(super) struct WebView {
    /// A part has so many pieces, each of so much work, ns at capacity 1024.
    pub pieces: Register,
    pub work: Register,
    /// It begins, and it has been done.
    pub ask: Flag,
    pub done: Flag,
}

/// What the threads share.
struct Shared {
    /// For Chrome_IOThread: an order, what the compositor says of a frame, a frame, the end of an order.
    io: Flag,
    begun: Register,
    frames: Register,
    answers: Register,
    main: Flag,
    paint: Flag,
    tile: Flag,
    /// What the compositor has been told of: frames, demands; what the main thread has: frames; hand-overs to come.
    begins: Register,
    demands: Register,
    begin: Register,
    handovers: Register,
    /// Pieces of the part that are left, and whether the main thread has yet to hear of it.
    left: Register,
    asked: Register,
    /// A piece for the network's thread, its answer, and a piece for the pool.
    data: Flag,
    reply: Flag,
    raster: Flag,
}

/// Adds a page's threads to a script with a display that draws it.
pub(super) fn add(script: &mut Script, display: &Display, frame: Page, work: &Work) -> WebView {
    let page = WebView {
        pieces: script.register(0),
        work: script.register(0),
        ask: script.flag(0),
        done: frame.done,
    };
    let shared = Shared {
        io: page.ask,
        begun: script.register(0),
        frames: script.register(0),
        answers: script.register(0),
        main: script.flag(0),
        paint: script.flag(0),
        tile: script.flag(0),
        begins: script.register(0),
        demands: script.register(0),
        begin: script.register(0),
        handovers: script.register(0),
        left: script.register(0),
        asked: script.register(0),
        data: script.flag(0),
        reply: script.flag(0),
        raster: script.flag(0),
    };
    app(script, &page, &shared, display, frame, work);
    main_thread(script, &page, &shared, display, work);
    compositor(script, &shared, work);
    helpers(script, &page, &shared, work);
    page
}

/// The threads that carry messages between the app and the renderer, and the app's display compositor.
fn app(
    script: &mut Script,
    page: &WebView,
    s: &Shared,
    display: &Display,
    frame: Page,
    work: &Work,
) {
    let message = Step::Work(burst(20_000));
    let begun = [Step::Take(s.begun), Step::Post(frame.begun)];
    let drawn = [
        Step::Take(s.frames),
        Step::Post(frame.frame),
        Step::Set(frame.metadata, 1),
        Step::Post(display.ui_event),
    ];
    let answered =
        [Step::Take(s.answers), Step::Add(frame.finished, 1), Step::Post(display.ui_event)];
    let asked = [Step::Copy(s.left, page.pieces), Step::Set(s.asked, 1), Step::Post(s.main)];
    script
        .thread("Chrome_IOThread", nice(-4))
        .of("app")
        .then(&[Step::Wait(s.io), message])
        .either(
            s.begun,
            |io| io.then(&begun),
            |io| {
                io.either(
                    s.frames,
                    |io| io.then(&drawn),
                    |io| io.either(s.answers, |io| io.then(&answered), |io| io.then(&asked)),
                )
            },
        )
        .for_ever();
    script
        .thread("Chrome_ChildIOT", nice(-4))
        .of("renderer")
        .then(&[Step::Wait(frame.message), message])
        .either(
            frame.begins,
            |begins| begins.then(&[Step::Take(frame.begins), Step::Add(s.begins, 1)]),
            |demands| demands.then(&[Step::Take(frame.demands), Step::Add(s.demands, 1)]),
        )
        .then(&[Step::Post(s.paint)])
        .for_ever();
    let put_together = Step::Work(burst(30_000 * work.compositors / 100));
    script
        .thread("VizWebView", nice(-10))
        .of("app")
        .then(&[Step::Wait(frame.viz), put_together, Step::Post(frame.viz_task)])
        .for_ever();
}

/// The renderer's main thread: the pieces of a part, and between two of them the frame that is due; without a part, frames.
fn main_thread(script: &mut Script, page: &WebView, s: &Shared, display: &Display, work: &Work) {
    let hand_over = [Step::Set(s.handovers, HANDOVERS), Step::Post(s.paint)];
    let frame = Step::Work(burst(400_000 * work.frame / 100));
    let piece = [
        Step::Take(s.left),
        Step::WorkShare(page.work, 100),
        Step::Post(s.raster),
        Step::Post(s.data),
        Step::Wait(s.reply),
    ];
    script
        .thread("CrRendererMain", nice(-10))
        .of("renderer")
        .then(&[Step::Wait(s.main)])
        .if_set(s.asked, |asked| {
            asked
                .then(&[Step::Set(s.asked, 0), Step::Set(display.animating, 1)])
                .then(&display.ask())
                .while_set(s.left, |more| {
                    more.then(&piece).if_set(s.begin, |begin| {
                        begin
                            .then(&[Step::Take(s.begin), Step::Wait(s.main), frame])
                            .then(&hand_over)
                    })
                })
                .then(&[Step::Set(display.animating, 0), Step::Add(s.answers, 1)])
                .then(&[Step::Post(s.io)])
        })
        .if_set(s.begin, |begin| begin.then(&[Step::Take(s.begin), frame]).then(&hand_over))
        .if_set(s.handovers, |again| again.then(&[Step::Work(burst(6_000)), Step::Post(s.paint)]))
        .for_ever();
}

/// The renderer's compositor: hears of a frame, hands it to the main thread and says so; draws what is demanded; takes what the main thread
/// has changed, in turns.
fn compositor(script: &mut Script, s: &Shared, work: &Work) {
    let of = |ns: u64| Step::Work(burst(ns * work.compositors / 100));
    let begun = [
        Step::Take(s.begins),
        of(60_000),
        Step::Add(s.begin, 1),
        Step::Post(s.main),
        Step::Add(s.begun, 1),
        Step::Post(s.io),
    ];
    let drawn = [Step::Take(s.demands), of(100_000), Step::Add(s.frames, 1), Step::Post(s.io)];
    let handed = [Step::Take(s.handovers), Step::Work(burst(25_000))];
    let committed = [of(50_000), Step::Post(s.tile), Step::Post(s.tile)];
    script
        .thread("Compositor", nice(-10))
        .of("renderer")
        .then(&[Step::Wait(s.paint)])
        .either(
            s.begins,
            |told| told.then(&begun),
            |told| {
                told.either(
                    s.demands,
                    |told| told.then(&drawn),
                    |told| {
                        told.if_set(s.handovers, |turn| {
                            turn.then(&handed).either(
                                s.handovers,
                                |more| more.then(&[Step::Post(s.main)]),
                                |last| last.then(&committed),
                            )
                        })
                    },
                )
            },
        )
        .for_ever();
}

/// The network's thread, and the pool.
fn helpers(script: &mut Script, page: &WebView, s: &Shared, work: &Work) {
    script
        .thread("NetworkService", nice(-4))
        .of("app")
        .then(&[Step::Wait(s.data), Step::WorkShare(page.work, NETWORK)])
        .then(&[Step::Sleep(DATA), Step::Post(s.reply)])
        .for_ever();
    script
        .thread("ThreadPoolForeg", nice(0))
        .of("renderer")
        .then(&[Step::Wait(s.raster), Step::WorkShare(page.work, work.raster)])
        .for_ever();
    for _ in 0..2 {
        script
            .thread("ThreadPoolForeg", nice(0))
            .of("renderer")
            .then(&[Step::Wait(s.tile), Step::Work(burst(75_000 * work.frame / 100))])
            .for_ever();
    }
}
