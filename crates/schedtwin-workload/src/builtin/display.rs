// SPDX-License-Identifier: GPL-2.0-or-later
//! The way of a frame on Android: from the display's clock through the app's threads and the GPU to the compositor and
//! back to the display, and the way of an input event to the app.
//!
//! ```text
//! timer ── TimerDispatch ── app ── UI thread ── RenderThread ──> GPU ──irq── kgsl_worker   frame done
//!               │                   ▲    │ wants the next vsync      (fence)
//!               │                   │    └─ Binder:sf ── app           │
//!               └── sf ── surfaceflinger <─ is the frame done? ────────┘
//!                              └── HwBinder (composer) ── crtc_commit
//!                                                                    │ display ──irq── crtc_event
//!             RenderThread <── free buffer ── surfaceflinger         ┘ at its next vsync
//!
//! injector ── Binder:system ── InputDispatcher ── UI thread ── InputDispatcher ── Binder:system ── injector
//! ```
//!
//! **Terms.** A frame is *intended* for the vsync that wakes the UI thread, and *done* when the GPU's worker signals its
//! fence and RenderThread has queued its buffer, whichever is later; its duration is what lies between, as
//! FrameMetrics.TOTAL_DURATION has it. It then still goes to the display, which
//! shows it at a later vsync. There are four buffers: an app that is late again and again makes
//! RenderThread wait for one, and then the UI thread for RenderThread.
//!
//! ```text
//! vsync of the display |               |               |               |
//! app, surfaceflinger        |               |               |
//!                            frame ... done  latched         |
//!                            <---16.6 ms---> <-10.5-> shown
//! ```
//!
//! **Algorithm** of a frame, with the classes of real traces (SM8150 and SM8250 phones) [S]:
//! 1. `TimerDispatch` (FIFO 2) sleeps until the next vsync that anybody wants, less the time that who wants it is given; a
//!    timer, not an interrupt, because SurfaceFlinger predicts vsyncs. It wakes `sf` and `app` (FIFO 2), and `app` the UI
//!    thread (nice -10) if that asked for it. At Pixel 6's 60 Hz both are due together.
//! 2. The UI thread asks for the next vsync if it goes on animating (through `Binder:sf_1` to `app`), answers waiting input,
//!    works, hands the frame to RenderThread (nice -10) and waits until that has taken over the view tree.
//! 3. RenderThread waits for a free buffer (a call of `Binder:sf_2`), draws, gives the GPU its work and queues the
//!    buffer (`Binder:sf_2` again), which makes surfaceflinger want a vsync.
//! 4. The GPU does one frame after the other, and begins one when the display has stopped reading its buffer, which is the one
//!    that has been free for longest. Its interrupt wakes `kgsl_worker` (FIFO 2), which signals the fence.
//! 5. `sf` wakes surfaceflinger (FIFO 1) if a buffer is queued. If the GPU is not through with that,
//!    it waits for the next vsync; else it latches it and calls the composer (FIFO 1, its caller's), which starts `crtc_commit`
//!    (FIFO 16); then surfaceflinger gives the buffer back that is shown until the next vsync. `crtc_commit` waits for that vsync, at
//!    which the display interrupts.
//!
//! A frame that is late makes the display queue one buffer more, and the frames behind it may be as late without being late on the
//! screen: what Jankbench's rule calls armed. When all buffers are queued, RenderThread waits for one, and the wait counts.
//!
//! Shares of work between the steps of one thread are estimates [E]; their sums are measured. The GPU's time a frame is a
//! parameter: no trace has it.
//!
//! Differences: names are those of the traces (Pixel 6 has other drivers than `kgsl` and `crtc`). Binder threads always have
//! the priority of the callers that they mostly have, rather than inherit it; a call wakes one certain thread. The GPU has one clock.
//! The display's vsync does not drift against the timers. Interrupts go to CPUs 1 (display) and 2 (GPU), as in the trace.
//!
//! Three things that fill or empty a queue are known and left out. surfaceflinger leaves a vsync out while its last frame has not
//! reached the display (back-pressure, on for Pixel 6 [S]); at 60 Hz BLASTBufferQueue keeps back one of the four buffers, which 90 Hz
//! alone need [S]; HWUI leaves a frame out when it waited for its last three buffers for more than 6 ms each [S].
//! From each vsync that the compositor misses, a buffer more is queued until the next pause, so all depends on how rarely it
//! misses one, of which its mean times, all that is known of the composer and the display's thread here, say little: it has 10.5 ms and
//! takes 9.6 in the mean at 574 MHz, where Pixel 6's little cores mostly are, by the clock's proportion, and 5 by the stalls that
//! the traces show (`machines/pixel6.toml`, `kinds=true`). With back-pressure the base kernel's mean frame is 54 and 32 ms (18.0
//! and 14.7 published); with three buffers the performance governor's is 8.7 (4.4 published). Who could notice: studies of late frames.

use super::amount::Amount;
use super::measured::{DO_FRAME, DRAW_FRAME, INVALIDATE, REFRESH, burst};
use super::options::WorkloadOption;
use super::script::{Device, Flag, Grid, Register, Script, Session, Step, fifo, nice};
use schedtwin_types::Ns;

/// Whether there are hints ([`crate::program::hints`]).
pub(super) const HINTS: WorkloadOption = WorkloadOption::count(
    None,
    "hints",
    "",
    0,
    (0, 1),
    "1: uclamp_min follows frame times, as performance hints (ADPF) have it on a phone",
);

const NS_PER_S: Ns = 1_000_000_000;
const NS_PER_MS: Ns = 1_000_000;
/// How long before the vsync that its frame is meant for surfaceflinger wakes up, and how long before surfaceflinger the app:
/// the product's configuration of Pixel 6 (`debug.sf.late.sf.duration` and `app.duration`), the same at each refresh rate [S].
const SF_DURATION: Ns = 10_500_000;
const APP_DURATION: Ns = 16_600_000;
/// Buffers of the app's window, without the one that is shown: HWUI asks for two more than the consumer may hold, and that may
/// hold as many as a frame takes whole periods of the highest refresh rate from the app's wakeup to the display (CanvasContext,
/// BLASTBufferQueue, SurfaceFlinger) [S]: 27.1 ms at Pixel 6's 90 Hz, two [D].
const FREE_BUFFERS: u32 = 3;
/// A timer of TimerDispatch calls whom it would call so soon after it too (VSyncDispatchTimerQueue) [S].
const TIMER_SLACK: Ns = 500_000;
/// From the vsync until the display has read the frame, which is its second interrupt. [E]
const SCAN_OUT: Ns = 3 * NS_PER_MS;
/// The settings of an app's display pipeline.
pub(super) struct Settings {
    /// `comm` of the app's UI thread.
    pub ui_name: &'static str,
    /// Between two vsyncs.
    pub refresh: Ns,
    /// Work a frame, per cent of the measured.
    pub frame_work: u64,
    /// Work of surfaceflinger and the composer, per cent of the measured.
    pub compositor_work: u64,
    /// The GPU's mean time a frame.
    pub gpu: Ns,
    /// Whether the app's threads have a session of hints (`crate::program::hints`).
    pub hints: bool,
    /// Whether what the app draws is a page in a web view (`super::webview`).
    pub page: Option<Page>,
}

impl Settings {
    /// An app whose frames cost what was measured, at 60 Hz, without hints.
    pub fn new(ui_name: &'static str) -> Settings {
        Settings {
            ui_name,
            refresh: NS_PER_S / 60,
            frame_work: 100,
            compositor_work: 100,
            gpu: 2 * NS_PER_MS,
            hints: false,
            page: None,
        }
    }
}

/// What the app's threads and those of a page in a web view tell each other in a frame.
#[derive(Clone, Copy)]
pub(super) struct Page {
    /// A message for the page; frames that it is told of, and frames that are demanded of it.
    pub message: Flag,
    pub begins: Register,
    pub demands: Register,
    /// The UI thread hears what the page will do in the frame, and RenderThread has what it shows.
    pub begun: Flag,
    pub frame: Flag,
    /// The UI thread is told of the frame's size and place.
    pub metadata: Register,
    /// It is told that a part of the page is done, and tells who waits for it.
    pub finished: Register,
    pub done: Flag,
    /// RenderThread has the display compositor put the frame together, and runs the tasks that this gives it.
    pub viz: Flag,
    pub viz_task: Flag,
}

impl Page {
    pub fn new(script: &mut Script) -> Page {
        let [begins, demands, metadata, finished] = std::array::from_fn(|_| script.register(0));
        let [message, begun, frame, done, viz, viz_task] = std::array::from_fn(|_| script.flag(0));
        Page { message, begins, demands, begun, frame, metadata, finished, done, viz, viz_task }
    }
}

/// The interface of the pipeline for other parts of the script.
pub(super) struct Display {
    /// Not 0: the UI thread asks for a vsync with each frame.
    pub animating: Register,
    /// Per cent of the measured work, of this part of the workload.
    pub ui_percent: Register,
    pub render_percent: Register,
    pub gpu_percent: Register,
    /// Work of each frame beside the measured, ns: of the UI thread before it hands over, of RenderThread before it draws.
    pub ui_own: Register,
    pub render_own: Register,
    /// More work of the UI thread's next frame, ns.
    pub ui_extra: Register,
    /// More work of the UI thread outside frames, ns: see `ui_event`.
    pub launch: Register,
    /// That work is done.
    pub launched: Flag,
    /// An input event waits for its frame, as motion does; else it is answered at once.
    pub batched: Register,
    /// Something has come for the UI thread.
    pub ui_event: Flag,
    /// An injected event begins its way, and has been answered.
    pub inject: Flag,
    pub injected: Flag,
    /// A frame was handed over.
    pub drawn: Flag,
    /// The UI thread wants to be told of the next vsync, and has not been; what carries its wish.
    wanted: Register,
    request: Flag,
}

impl Display {
    /// The app wants to draw a frame at the next vsync.
    pub fn ask(&self) -> [Step; 2] {
        [Step::Set(self.wanted, 1), Step::Post(self.request)]
    }
}

/// Shared memory of the pipeline's threads.
struct Shared {
    display: Display,
    /// Registers of 100 per cent and of a moment that has passed.
    hundred: Register,
    at_once: Register,
    refresh: Ns,
    /// TimerDispatch is to go on for another vsync.
    armed: Flag,
    app_event: Flag,
    app_tick: Register,
    vsync: Register,
    /// The vsync that the UI thread was told of last, and whether it has heard.
    frame_vsync: Register,
    frame_due: Register,
    input_due: Register,
    /// A motion event is to be answered by the next frame.
    input_held: Register,
    answer_due: Register,
    dispatcher: Flag,
    draw: Flag,
    synced: Flag,
    free: Flag,
    /// How many buffers are free.
    spare: Register,
    /// When the display stops reading the buffer that was freed last, the one freed before it, and the one taken.
    released: Register,
    released_before: Register,
    taken: Register,
    sf_tick: Flag,
    queued: Register,
    latch: Flag,
    /// Frames that the GPU is through with and surfaceflinger has not taken.
    signalled: Register,
    /// Frames that only the GPU, or only RenderThread is through with.
    drawn_first: Register,
    queued_first: Register,
    compose: Flag,
    composed: Flag,
    commit: Flag,
    /// The session of the app's two threads, if it has one.
    session: Option<Session>,
}

/// Adds the pipeline to a script.
pub(super) fn add(script: &mut Script, settings: &Settings) -> Display {
    script.refresh = settings.refresh;
    let display = Display {
        animating: script.register(0),
        ui_percent: script.register(100),
        render_percent: script.register(100),
        gpu_percent: script.register(100),
        ui_own: script.register(0),
        render_own: script.register(0),
        ui_extra: script.register(0),
        launch: script.register(0),
        launched: script.flag(0),
        batched: script.register(0),
        ui_event: script.flag(0),
        inject: script.flag(0),
        injected: script.flag(0),
        drawn: script.flag(0),
        wanted: script.register(0),
        request: script.flag(0),
    };
    let shared = Shared {
        display,
        hundred: script.register(100),
        at_once: script.register(0),
        refresh: settings.refresh,
        armed: script.flag(0),
        app_event: script.flag(0),
        app_tick: script.register(0),
        vsync: script.register(0),
        frame_vsync: script.register(0),
        frame_due: script.register(0),
        input_due: script.register(0),
        input_held: script.register(0),
        answer_due: script.register(0),
        dispatcher: script.flag(0),
        draw: script.flag(0),
        synced: script.flag(0),
        free: script.flag(FREE_BUFFERS),
        spare: script.register(u64::from(FREE_BUFFERS)),
        released: script.register(0),
        released_before: script.register(0),
        taken: script.register(0),
        sf_tick: script.flag(0),
        queued: script.register(0),
        latch: script.flag(0),
        signalled: script.register(0),
        drawn_first: script.register(0),
        queued_first: script.register(0),
        compose: script.flag(0),
        composed: script.flag(0),
        commit: script.flag(0),
        session: settings.hints.then(|| script.session(settings.refresh)),
    };
    vsyncs(script, &shared);
    ui_thread(script, &shared, settings);
    let gpu = gpu(script, &shared);
    render_thread(script, &shared, settings, gpu);
    compositor(script, &shared, settings.compositor_work);
    input(script, &shared);
    shared.display
}

/// A moment so long before a vsync, as the phase of a grid.
fn ahead_of_vsync(ahead: Ns, period: Ns) -> Grid {
    Grid { period, phase: (period - ahead % period) % period }
}

/// TimerDispatch and the event threads of app and compositor.
fn vsyncs(script: &mut Script, s: &Shared) {
    let work = Step::Work(burst(9_500));
    let compositor = ahead_of_vsync(SF_DURATION, s.refresh);
    let app = ahead_of_vsync(SF_DURATION + APP_DURATION, s.refresh);
    let tell_compositor = [Step::Raise(s.sf_tick)];
    let tell_app = [Step::Now(s.vsync), Step::Set(s.app_tick, 1), Step::Post(s.app_event)];
    let (first, second, tell_first, tell_second) = if compositor.phase <= app.phase {
        (compositor, app, &tell_compositor[..], &tell_app[..])
    } else {
        (app, compositor, &tell_app[..], &tell_compositor[..])
    };
    let timers = script.thread("TimerDispatch", fifo(2)).of("surfaceflinger");
    let timers = timers.then(&[Step::Wait(s.armed), Step::Until(first), work]).then(tell_first);
    let timers = match second.phase - first.phase {
        ..TIMER_SLACK => timers,
        _ => timers.then(&[Step::Until(second), work]),
    };
    timers.then(tell_second).for_ever();
    script
        .thread("app", fifo(2))
        .of("surfaceflinger")
        .then(&[Step::Wait(s.app_event), Step::Work(burst(9_500))])
        .if_set(s.app_tick, |tick| {
            tick.then(&[Step::Set(s.app_tick, 0)]).if_set(s.display.wanted, |wanted| {
                wanted.then(&[
                    Step::Set(s.display.wanted, 0),
                    Step::Copy(s.frame_vsync, s.vsync),
                    Step::Set(s.frame_due, 1),
                    Step::Post(s.display.ui_event),
                ])
            })
        })
        .if_set(s.display.wanted, |wanted| wanted.then(&[Step::Raise(s.armed)]))
        .for_ever();
    script
        .thread("sf", fifo(2))
        .of("surfaceflinger")
        .then(&[Step::Wait(s.sf_tick), Step::Work(burst(6_900))])
        .if_set(s.queued, |queued| queued.then(&[Step::Raise(s.latch)]))
        .for_ever();
    let vsync_asked =
        [Step::Wait(s.display.request), Step::Work(burst(31_300)), Step::Post(s.app_event)];
    script.thread("Binder:sf_1", nice(-10)).of("surfaceflinger").then(&vsync_asked).for_ever();
}

/// The UI thread: frames, input, and what its app does besides (starting an activity).
fn ui_thread(script: &mut Script, s: &Shared, settings: &Settings) {
    let work = script.register(0);
    let ask = s.display.ask();
    let answer = [Step::Set(s.answer_due, 1), Step::Post(s.dispatcher)];
    let d = &s.display;
    let before = match settings.page {
        Some(page) => vec![
            Step::WorkShare(work, 20),
            Step::Add(page.begins, 1),
            Step::Post(page.message),
            Step::WorkShare(work, 30),
            Step::Wait(page.begun),
            Step::WorkShare(work, 25),
            Step::Add(page.demands, 1),
            Step::Post(page.message),
            Step::WorkShare(work, 10),
        ],
        None => vec![Step::WorkShare(work, 85)],
    };
    script
        .thread(settings.ui_name, nice(-10))
        .of("app")
        .then(&[Step::Wait(d.ui_event)])
        .if_set(d.launch, |launch| launch.then(&[Step::WorkRest(d.launch), Step::Post(d.launched)]))
        .when(settings.page, |told, page| {
            told.if_set(page.metadata, |told| {
                told.then(&[Step::Set(page.metadata, 0), Step::Work(burst(15_000))])
            })
            .if_set(page.finished, |told| {
                told.then(&[
                    Step::Take(page.finished),
                    Step::Work(Amount::Uniform(50_000, 250_000)),
                    Step::Post(page.done),
                ])
            })
        })
        .if_set(s.input_due, |input| {
            let input = input.then(&[Step::Set(s.input_due, 0), Step::Work(burst(25_000))]);
            // Motion waits for the next frame, which answers it; a key is answered at once.
            let held = input.either(
                d.batched,
                |motion| motion.then(&[Step::Set(s.input_held, 1)]),
                |key| key.then(&answer),
            );
            held.unless_set(s.display.wanted, |first| {
                first.unless_set(s.frame_due, |free| free.then(&ask))
            })
        })
        .if_set(s.frame_due, |frame| {
            let frame = frame.then(&[Step::Set(s.frame_due, 0), Step::FrameBegin(s.frame_vsync)]);
            frame
                .hints(s.session, |session| [Step::HintBegin(session), Step::HintTake(session)])
                .if_set(s.input_held, |held| held.then(&[Step::Set(s.input_held, 0)]).then(&answer))
                .if_set(d.animating, |animating| animating.then(&ask))
                .then(&[
                    Step::WorkRest(d.ui_extra),
                    Step::WorkShare(d.ui_own, 100),
                    Step::Draw(work, Amount::Table(&DO_FRAME, settings.frame_work), d.ui_percent),
                ])
                .then(&before)
                .then(&[Step::Post(s.draw), Step::Wait(s.synced), Step::WorkShare(work, 15)])
                .hints(s.session, |session| [Step::HintTake(session)])
        })
        .for_ever();
}

/// RenderThread, the binder thread that gives and takes buffers, and who waits for the GPU on its behalf.
fn render_thread(script: &mut Script, s: &Shared, settings: &Settings, gpu: Device) {
    let work = script.register(0);
    let [call, reply] = std::array::from_fn(|_| script.flag(0));
    let gpu_time = Amount::Uniform(settings.gpu * 6 / 10, settings.gpu * 14 / 10);
    let drawing = Amount::Table(&DRAW_FRAME, settings.frame_work);
    let waits_since = script.register(0);
    // What a page shows, put together with the display compositor's thread.
    let page = match settings.page {
        Some(page) => {
            let viz = [Step::Post(page.viz), Step::Wait(page.viz_task)];
            let task = [Step::WorkShare(work, 10), viz[0], viz[1]];
            [&[Step::Wait(page.frame)][..], &viz, &task, &task].concat()
        }
        None => Vec::new(),
    };
    script
        .thread("RenderThread", nice(-10))
        .of("app")
        .then(&[Step::Wait(s.draw)])
        .hints(s.session, |session| [Step::HintTake(session)])
        .then(&[
            Step::Draw(work, drawing, s.display.render_percent),
            Step::WorkShare(work, 10),
            Step::Post(s.synced),
        ])
        .hints(s.session, |_| [Step::HintClock(waits_since)])
        .then(&[
            // dequeueBuffer
            Step::Post(call),
            Step::Wait(reply),
            Step::Wait(s.free),
            Step::Take(s.spare),
        ])
        .hints(s.session, |session| [Step::HintWaited(session, waits_since)])
        // The buffer that has been free for longest.
        .either(
            s.spare,
            |older| older.then(&[Step::Copy(s.taken, s.released_before)]),
            |last| last.then(&[Step::Copy(s.taken, s.released)]),
        )
        .then(&page)
        .then(&[
            Step::WorkShare(s.display.render_own, 100),
            Step::WorkShare(work, if page.is_empty() { 55 } else { 35 }),
            Step::Start(gpu, gpu_time, s.display.gpu_percent, s.taken),
            Step::WorkShare(work, 35),
            // queueBuffer
            Step::Add(s.queued, 1),
            Step::Post(call),
            Step::Wait(reply),
            Step::Raise(s.armed),
            Step::Raise(s.display.drawn),
        ])
        .both(s.drawn_first, s.queued_first, Step::FrameEnd)
        .hints(s.session, |session| [Step::HintEnd(session), Step::HintTake(session)])
        .for_ever();
    let serve = [Step::Wait(call), Step::Work(burst(31_300)), Step::Post(reply)];
    script.thread("Binder:sf_2", nice(-10)).of("surfaceflinger").then(&serve).for_ever();
}

/// The GPU, its worker, and the app's thread that waits for its fences.
fn gpu(script: &mut Script, s: &Shared) -> Device {
    let [irq, waiter, timer] = std::array::from_fn(|_| script.flag(0));
    let device = script.device("gpu", 2, &[irq]);
    let frame_done = script.flag(0);
    script.frame_done = Some(frame_done);
    script
        .thread("kgsl_worker", fifo(2))
        .then(&[Step::Wait(irq), Step::Work(burst(15_300))])
        .both(s.queued_first, s.drawn_first, Step::FrameEnd)
        .then(&[
            Step::Add(s.signalled, 1),
            Step::Post(waiter),
            Step::Raise(timer),
            Step::Raise(frame_done),
        ])
        .for_ever();
    // Its timers, 96 wakeups a second among 55 frames.
    let nap = Step::Sleep(Amount::Uniform(NS_PER_MS, 4 * NS_PER_MS));
    let work = Step::Work(burst(15_300));
    script
        .thread("kgsl_timer", fifo(2))
        .then(&[Step::Wait(timer), nap, work, nap, work])
        .for_ever();
    script
        .thread("GPU completion", nice(-10))
        .of("app")
        .then(&[Step::Wait(waiter), Step::Work(burst(4_000))])
        .for_ever();
    device
}

/// surfaceflinger, the composer, and the display's threads and interrupts.
fn compositor(script: &mut Script, s: &Shared, work: u64) {
    let [shown, event] = std::array::from_fn(|_| script.flag(0));
    let period = s.refresh;
    let vsync_irq = script.device("display", 1, &[event, shown]);
    let done_irq = script.device("display done", 1, &[event]);
    script
        .thread("surfaceflinger", fifo(1))
        .then(&[Step::Wait(s.latch)])
        .if_set(s.queued, |queued| {
            let queued = queued.then(&[Step::Work(Amount::Table(&INVALIDATE, work))]);
            // A buffer that the GPU still draws into is left for the next vsync.
            queued.if_set(s.signalled, |drawn| {
                drawn.then(&[
                    Step::Take(s.queued),
                    Step::Take(s.signalled),
                    Step::Work(Amount::Table(&REFRESH, 60 * work / 100)),
                    Step::Post(s.compose),
                    Step::Wait(s.composed),
                    Step::Work(Amount::Table(&REFRESH, 40 * work / 100)),
                    // The buffer that is shown until then.
                    Step::Copy(s.released_before, s.released),
                    Step::SetNext(s.released, Grid { period, phase: 0 }),
                    Step::Add(s.spare, 1),
                    Step::Post(s.free),
                ])
            })
        })
        .if_set(s.queued, |more| more.then(&[Step::Raise(s.armed)]))
        .for_ever();
    script
        .thread("HwBinder:composer", fifo(1))
        .then(&[
            Step::Wait(s.compose),
            Step::Work(burst(133_100 * work / 100)),
            Step::Post(s.commit),
            Step::Post(s.composed),
        ])
        .for_ever();
    // 78 us a frame in the trace, in 3.3 bursts of which one is large.
    script
        .thread("crtc_commit", fifo(16))
        .then(&[
            Step::Wait(s.commit),
            Step::Work(burst(67_000)),
            Step::StartUntil(vsync_irq, Grid { period, phase: 0 }),
            Step::Wait(shown),
            Step::Start(done_irq, Amount::Fixed(SCAN_OUT), s.hundred, s.at_once),
            Step::Work(burst(11_000)),
        ])
        .for_ever();
    script
        .thread("crtc_event", fifo(16))
        .then(&[Step::Wait(event), Step::Work(burst(3_400))])
        .for_ever();
}

/// Adds the threads that bring injected input to the UI thread, and its answer back.
fn input(script: &mut Script, s: &Shared) {
    let delivered = script.flag(0);
    script
        .thread("Binder:system_1", nice(0))
        .then(&[
            Step::Wait(s.display.inject),
            Step::Work(burst(31_300)),
            Step::Post(s.dispatcher),
            Step::Wait(delivered),
            Step::Work(burst(15_000)),
            Step::Post(s.display.injected),
        ])
        .for_ever();
    script
        .thread("InputDispatcher", nice(-8))
        .then(&[Step::Wait(s.dispatcher), Step::Work(burst(17_600))])
        .either(
            s.answer_due,
            |answer| answer.then(&[Step::Set(s.answer_due, 0), Step::Post(delivered)]),
            |event| event.then(&[Step::Set(s.input_due, 1), Step::Post(s.display.ui_event)]),
        )
        .for_ever();
}
