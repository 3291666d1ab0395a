// SPDX-License-Identifier: GPL-2.0-or-later
//! Lessons as pages: their text with the numbers of their runs, and the playground with their experiment.

use std::fs;
use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use schedtwin_web::lesson::Lesson;

/// Where documents that a lesson names are found.
const DOCUMENTS: &str = "docs/";

/// Writes a page for each lesson of a folder and `lessons.html`, which lists them; how many there are.
pub fn write(folder: &Path, out: &Path) -> Result<usize, String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        files.push(entry.map_err(|error| error.to_string())?.path());
    }
    files.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    files.sort();
    let mut all = Vec::new();
    for path in &files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let lesson = Lesson::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        all.push((format!("lesson-{name}.html"), lesson));
    }
    for (at, (file, lesson)) in all.iter().enumerate() {
        let filled = lesson.fill().map_err(|error| format!("{file}: {error}"))?;
        let near = [at.checked_sub(1), Some(at + 1)].map(|at| all.get(at?));
        let body = html! {
            h1 { (lesson.head.title) }
            (markdown(&filled.text))
            h2 { "Find out" }
            p { (lesson.head.question) }
            details { summary { "The answer" } (markdown(&filled.answer)) }
            p.legend { "Numbers in this text come from the experiment below, run when the page was built." }
            nav aria-label="Other lessons" { @for other in near.into_iter().flatten() {
                a href=(other.0) { (other.1.head.title) } " "
            } a href="lessons.html" { "All lessons" } }
        };
        let request = serde_json::to_string(&lesson.request()).map_err(|e| e.to_string())?;
        let page = page(&lesson.head.title, body, Some(&request));
        fs::write(out.join(file), page).map_err(|error| format!("{file}: {error}"))?;
    }
    let body = html! {
        h1 { "Lessons" }
        p { "Each explains a rule of Linux's scheduler, frequency or idle code, and runs an experiment that shows it: here, in your browser." }
        ol { @for (file, lesson) in &all { li { a href=(file) { (lesson.head.title) } br; span.muted { (lesson.head.question) } } } }
    };
    fs::write(out.join("lessons.html"), page("Lessons", body, None)).map_err(|e| e.to_string())?;
    Ok(all.len())
}

/// A page in the playground's frame; with an experiment, which stands below.
fn page(title: &str, body: Markup, request: Option<&str>) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " - schedtwin" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="style.css";
            }
            body {
                header { a href="index.html" { b { "schedtwin" } } nav aria-label="Pages" { a href="index.html" { "Playground" } " " a href="lessons.html" { "Lessons" } } }
                main {
                    article { (body) }
                    @if let Some(request) = request { div #playground data-request=(request) {} }
                }
                @if request.is_some() {
                    script src="engine.js" {}
                    script src="playground.js" {}
                }
            }
        }
    }
    .into_string()
}

/// Markdown as HTML: HTML within it is shown as text, and documents of the project, which are not beside the page, are named, not linked.
fn markdown(text: &str) -> Markup {
    let mut is_document = false;
    let events = Parser::new(text).filter_map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::Link { ref dest_url, .. }) => {
            is_document = dest_url.starts_with(DOCUMENTS);
            (!is_document).then_some(event)
        }
        Event::End(TagEnd::Link) => (!is_document).then_some(event),
        other => Some(other),
    });
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events);
    PreEscaped(html)
}
