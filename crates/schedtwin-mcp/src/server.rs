// SPDX-License-Identifier: GPL-2.0-or-later
//! The server: answers calls on one thread, and does their work on others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities,
    ServerConfig, Tool as Described, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use schedtwin::Progress;

use crate::arguments::{Arguments, schema};
use crate::page::{PAGE, page};
use crate::tools::{self, TOOLS};

/// Results whose further pages need no new run.
const KEPT: usize = 8;
/// How often progress is told.
const PERIOD: Duration = Duration::from_millis(500);

const INSTRUCTIONS: &str = "\
A deterministic twin of Linux's scheduler, frequency and idle code: it runs kernels on modelled machines. Begin with list \
(machines, kernels, workloads, settings); compare says what a change does, properties what it breaks, first_difference and explain \
why, score gives one number for a search. Kernels have settings in place: linux-7.3:hz=1000,schedutil.rate_limit_us=500. Machines, \
kernels and workloads may be given as {\"name\": ..., \"text\": the content of a file}. Nothing is written, and equal calls have equal \
results.";

/// A server.
#[derive(Clone)]
pub struct Server {
    has_folder: bool,
    /// Calls and their whole results, the oldest first.
    kept: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    /// A server with a folder of files, or without.
    pub fn new(has_folder: bool) -> Server {
        Server { has_folder, kept: Arc::default() }
    }

    fn kept(&self, call: &str) -> Option<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == call).map(|(_, text)| text.clone())
    }

    fn keep(&self, call: String, text: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((call, text.to_string()));
    }

    /// Does the work of a call, and tells its progress until it is done or nobody waits any more.
    async fn work(
        &self,
        tool: &'static tools::Tool,
        arguments: Arguments,
        context: &RequestContext<RoleServer>,
    ) -> Result<String, String> {
        let progress = Arc::new(Progress::new());
        let own = progress.clone();
        let mut work = tokio::task::spawn_blocking(move || tools::perform(tool, &arguments, &own));
        let token = context.meta.get_progress_token();
        let mut told = 0.0;
        loop {
            tokio::select! {
                done = &mut work => {
                    return done.unwrap_or_else(|_| Err("the work was broken off".to_string()));
                }
                () = context.ct.cancelled() => {
                    progress.cancel();
                    return Err("it was cancelled".to_string());
                }
                () = tokio::time::sleep(PERIOD) => {}
            }
            let fraction = progress.fraction();
            if let Some(token) = token.clone().filter(|_| fraction > told) {
                told = fraction;
                let runs = format!("{} of {} runs", progress.done_runs(), progress.expected_runs());
                let param = ProgressNotificationParam::new(token, fraction);
                let param = param.with_total(1.0).with_message(runs);
                // A client that has gone is told nothing.
                let _ = context.peer.notify_progress(param).await;
            }
        }
    }
}

fn described() -> Vec<Described> {
    let annotations =
        ToolAnnotations::from_raw(None, Some(true), Some(false), Some(true), Some(false));
    TOOLS
        .iter()
        .map(|tool| {
            let mut described = Described::new(tool.name, tool.about, schema(&tool.all_fields()));
            described.annotations = Some(annotations.clone());
            described
        })
        .collect()
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("schedtwin", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult { tools: described(), ..ListToolsResult::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let refused =
            |text: String| Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into());
        let Some(tool) = tools::find(&request.name) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            return refused(format!(
                "there is no tool `{}`; there are {}",
                request.name,
                names.join(", ")
            ));
        };
        let mut given = request.arguments.unwrap_or_default();
        let read = Arguments::read(&tool.all_fields(), given.clone(), self.has_folder);
        let arguments = match read {
            Ok(arguments) => arguments,
            Err(faults) => return refused(faults),
        };
        let offset = arguments.whole("offset").unwrap_or(0) as usize;
        given.remove("offset");
        let call = format!("{} {}", tool.name, serde_json::Value::Object(given));
        // A file of the folder may have changed: only further pages are taken from what is kept.
        let text = match self.kept(&call).filter(|_| offset > 0) {
            Some(text) => text,
            None => match self.work(tool, arguments, &context).await {
                Ok(text) => {
                    self.keep(call, &text);
                    text
                }
                Err(faults) => return refused(page(&faults, 0, PAGE)),
            },
        };
        let text = page(&text, offset, PAGE);
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}
