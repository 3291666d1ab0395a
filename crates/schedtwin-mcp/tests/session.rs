// SPDX-License-Identifier: GPL-2.0-or-later
//! Sessions with the official SDK's client: what an agent that tries to make a scheduler better would do, and what it must not.

use std::path::Path;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest,
    ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RunningService};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use schedtwin_mcp::Server;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A client that notes progress.
struct Client(UnboundedSender<ProgressNotificationParam>);

impl ClientHandler for Client {
    async fn on_progress(
        &self,
        told: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(told);
    }
}

type Session = RunningService<RoleClient, Client>;

async fn session(has_folder: bool) -> (Session, UnboundedReceiver<ProgressNotificationParam>) {
    let (to_server, to_client) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        let running = Server::new(has_folder).serve(to_server).await.expect("it starts");
        let _ = running.waiting().await;
    });
    let (sender, receiver) = unbounded_channel();
    (Client(sender).serve(to_client).await.expect("it connects"), receiver)
}

fn request(tool: &str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    CallToolRequestParams::new(tool.to_string()).with_arguments(arguments)
}

fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| Some(block.as_text()?.text.clone())).collect()
}

async fn good(session: &Session, tool: &str, arguments: Value) -> String {
    let result = session.call_tool(request(tool, arguments)).await.expect("a result");
    assert_ne!(result.is_error, Some(true), "{tool}: {}", text(&result));
    text(&result)
}

async fn bad(session: &Session, tool: &str, arguments: Value) -> String {
    let result = session.call_tool(request(tool, arguments)).await.expect("a result");
    assert_eq!(result.is_error, Some(true), "{tool}: {}", text(&result));
    text(&result)
}

/// Two kernels on the yardstick for a tenth of a second.
fn two(other: &str) -> Value {
    json!({"machine": "uniform8", "workload": "ui-phone", "kernels": ["linux-7.3", other],
           "duration": "100ms", "seeds": 3})
}

/// With one setting changed.
fn with(mut arguments: Value, key: &str, value: Value) -> Value {
    arguments[key] = value;
    arguments
}

#[tokio::test]
async fn an_agent_finds_what_a_change_does_and_why() {
    let (session, _) = session(false).await;
    let tools = session.list_all_tools().await.expect("tools");
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(
        names,
        [
            "list",
            "show",
            "check",
            "run",
            "compare",
            "explain",
            "first_difference",
            "properties",
            "bisect",
            "shrink",
            "score"
        ]
    );
    // What every call costs a model before it has asked anything.
    let told = serde_json::to_string(&tools).expect("JSON").len();
    assert!(told < 16_000, "the tools take {told} characters");
    assert!(
        tools.iter().all(|tool| tool.annotations.as_ref().unwrap().read_only_hint == Some(true))
    );

    let machines = good(&session, "list", json!({"kind": "machines", "filter": "google"})).await;
    assert!(machines.starts_with("pixel6: ") && machines.lines().count() == 2, "{machines}");
    let settings =
        good(&session, "list", json!({"kind": "settings", "filter": "rate_limit"})).await;
    assert!(settings.contains("schedutil.rate_limit_us"), "{settings}");
    let shown = good(&session, "show", json!({"kind": "suite", "name": "phone"})).await;
    assert!(shown.contains("[[job]]"), "{shown}");

    let compared = good(&session, "compare", two("linux-7.3:hz=100")).await;
    assert!(compared.contains("B  linux-7.3:hz=100") && compared.contains("power"), "{compared}");
    let chosen = with(two("linux-7.3:hz=100"), "metrics", json!(["ticks"]));
    let chosen = good(&session, "compare", chosen).await;
    assert!(chosen.contains("ticks") && !chosen.contains("frame_duration"), "{chosen}");

    let mut parting = two("linux-7.3:hz=100");
    parting.as_object_mut().unwrap().remove("seeds");
    let parted = good(&session, "first_difference", parting).await;
    assert!(parted.starts_with("first difference at "), "{parted}");
    let one = json!({"machine": "uniform8", "workload": "ui-phone", "kernel": "linux-7.3",
                     "duration": "100ms", "at": "50ms", "window": "5ms", "limit": 5});
    let why = good(&session, "explain", one).await;
    assert!(why.contains("entries; a larger `limit`"), "{why}");
    let run = json!({"machine": "uniform8", "workload": "ui-phone", "kernel": "linux-7.3",
                     "duration": "100ms", "metrics": ["power.mean"]});
    let run = good(&session, "run", run).await;
    assert!(run.starts_with("power mean: ") && run.ends_with(" mW\n"), "{run}");
    let kept = good(&session, "properties", two("linux-7.3:hz=100")).await;
    assert!(kept.contains("linux-7.3, 3 runs:"), "{kept}");
}

/// A bug of Linux that is a setting here: it breaks a property, bisection names it, and shrinking makes the work small.
#[tokio::test]
async fn an_agent_finds_a_cause_and_its_smallest_case() {
    let (session, _) = session(false).await;
    let bugs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schedtwin-lab/tests/bugs");
    let work = std::fs::read_to_string(bugs.join("powernightmare.json")).expect("it is there");
    let case = json!({
        "machine": "uniform8", "good": "linux-6.12:cpuidle=menu",
        "bad": "linux-6.12:cpuidle=menu,bugs.tick_stopped_first=true",
        "workload": {"name": "powernightmare.json", "text": work},
    });
    let found = good(&session, "bisect", case.clone()).await;
    assert!(found.starts_with("the bad kernel breaks idle-stuck: "), "{found}");
    assert!(found.contains("  bugs.tick_stopped_first: false (good) -> true (bad)\n"), "{found}");
    let shrunk = good(&session, "shrink", case).await;
    assert!(shrunk.contains("shrunk in ") && shrunk.contains("\"tasks\": {"), "{shrunk}");
    let same = json!({"machine": "uniform8", "good": "linux-7.3", "bad": "linux-7.3",
                      "workload": "ui-phone", "duration": "50ms"});
    let same = bad(&session, "bisect", same).await;
    assert!(same.contains("nothing to bisect"), "{same}");
}

#[tokio::test]
async fn errors_teach_and_files_stay_outside() {
    let (session, _) = session(false).await;
    let faults = bad(&session, "compare", json!({"machnie": "pixel6", "kernels": []})).await;
    for part in
        ["did you mean `machine`?", "`machine` is missing", "`workload` is missing", "at least one"]
    {
        assert!(faults.contains(part), "{part}: {faults}");
    }
    let faults = bad(&session, "compare", two("linux-7.3:hzz=100")).await;
    assert!(faults.contains("did you mean `hz`?"), "{faults}");
    let faults = bad(&session, "walk", json!({})).await;
    assert!(faults.contains("there are list, show"), "{faults}");
    for path in ["/etc/passwd", "../x.toml", "linux-7.3:scx=./a.bpf.c"] {
        let faults = bad(&session, "show", json!({"kind": "kernel", "name": path})).await;
        assert!(faults.contains("--folder"), "{faults}");
    }
    let text = "name = \"mine\"\ndescription = \"of mine\"\nextends = \"/etc/passwd\"\n";
    let outside = json!({"kind": "kernel", "input": {"name": "mine", "text": text}});
    let faults = bad(&session, "check", outside).await;
    assert!(faults.contains("--folder"), "{faults}");
    // A text needs no file.
    let text = "name = \"mine\"\ndescription = \"of mine\"\nextends = \"linux-7.3\"\nhz = 0\n";
    let mine = json!({"kind": "kernel", "input": {"name": "mine", "text": text}});
    let faults = bad(&session, "check", mine).await;
    assert!(faults.contains("mine:4:"), "{faults}");
}

#[tokio::test]
async fn what_is_long_comes_in_pages() {
    let (session, _) = session(false).await;
    let mut whole = String::new();
    loop {
        let asked = json!({"kind": "settings", "offset": whole.chars().count()});
        let part = good(&session, "list", asked).await;
        assert!(part.chars().count() <= 6_100, "{}", part.len());
        match part.rfind("(characters ") {
            Some(at) if part.ends_with(')') => whole.push_str(&part[..at]),
            _ => {
                whole.push_str(&part);
                break;
            }
        }
    }
    assert!(
        whole.lines().count() > 100 && whole.lines().all(|line| line.contains(": ")),
        "{whole}"
    );
}

#[tokio::test]
async fn scores_tell_their_reason() {
    let (session, _) = session(false).await;
    let asked = json!({"suite": "laptop", "kernels": ["linux-7.3:hzz=1"]});
    let scored = good(&session, "score", asked).await;
    assert!(
        scored.starts_with("linux-7.3:hzz=1: 0 ") && scored.contains("did you mean `hz`"),
        "{scored}"
    );
    let suite = "name = \"tiny\"\ndescription = \"one run\"\nbaseline = \"linux-7.3\"\nseeds = 1\n[[job]]\nname = \"scrolling\"\n\
                 machines = [\"uniform8\"]\nworkloads = [\"ui-phone\"]\nduration = \"100ms\"\n\
                 measure = [{ metric = \"wakeup_latency.mean\" }]\n";
    let suite = json!({"name": "tiny", "text": suite});
    let asked = json!({"suite": suite, "kernels": ["baseline:hz=1000"], "seed": 3});
    let scored = good(&session, "score", asked).await;
    assert!(scored.starts_with("baseline:hz=1000: ") && scored.contains("scrolling"), "{scored}");
    let checked = good(&session, "check", json!({"kind": "suite", "input": suite})).await;
    assert_eq!(checked, "fine");
}

/// Work that takes long says how far it is, and ends when it is cancelled: the server answers others meanwhile.
#[tokio::test]
async fn long_work_tells_its_progress_and_can_be_cancelled() {
    let (session, mut progress) = session(false).await;
    let mut long = with(two("linux-7.3:hz=1000"), "seeds", json!(100));
    long["duration"] = json!("20s");
    let call = ClientRequest::CallToolRequest(CallToolRequest::new(request("compare", long)));
    let handle = session
        .send_cancellable_request(call, PeerRequestOptions::no_options())
        .await
        .expect("sent");
    let told = progress.recv().await.expect("progress");
    assert!(told.total == Some(1.0) && told.message.unwrap().contains("of 200 runs"));
    let others = good(&session, "list", json!({"kind": "suites"})).await;
    assert!(others.contains("default: "), "{others}");
    handle.cancel(Some("enough".to_string())).await.expect("cancelled");
    // The threads are free again for something short.
    good(&session, "compare", two("linux-7.3:hz=100")).await;
    let told: Vec<ProgressNotificationParam> =
        std::iter::from_fn(|| progress.try_recv().ok()).collect();
    assert!(told.iter().all(|told| told.progress < 1.0), "{told:?}");
}
