// SPDX-License-Identifier: GPL-2.0-or-later
// The playground, its lessons and the site's book as a person meets them, in headless Chromium, from a folder: no server, three
// widths, keyboard alone.
//
//   cargo xtask web && cargo xtask site && npm --prefix web/test ci && npm --prefix web/test test
//
// The book is left out if nobody has built it. CHROMIUM is the browser, else /usr/bin/chromium. DIGESTS is what the engine's
// example `digests` printed: then forty of its runs are performed in the page and have to be the same.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../..", import.meta.url));
const target = process.env.CARGO_TARGET_DIR ?? `${root}target`;
const [built, site] = [`${target}/web`, `${target}/site`];
const WIDTHS = [390, 768, 1280];
const address = name => { const [file, hash = ""] = name.split("#"); return `${pathToFileURL(`${built}/${file}`).href}#${hash}`; };
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const SMALL = { machine: "pixel6", kernels: ["linux-6.12-gki", "linux-6.12-gki:hz=1000"], workload: "ui-phone", seconds: 0.3, seeds: 2 };

let browser;
before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
});
after(() => browser.close());

// A page of the playground, with what went wrong in it; nothing may.
const open = async (name, options = {}) => {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", error => faults.push(error.message));
  page.on("request", request => { if (!/^(file|blob|data):/.test(request.url())) faults.push(`it asks ${request.url()}`); });
  await page.goto(address(name));
  await page.getByRole("button", { name: "Run" }).and(page.locator(":enabled")).waitFor();
  return { page, close: async () => { assert.deepEqual(faults, []); await context.close(); } };
};

// Fills the form and runs it; the frame of the result.
const experiment = async (page, wanted) => {
  await page.getByRole("combobox", { name: "Machine", exact: true }).selectOption(wanted.machine);
  await page.getByLabel("Workload, with its options").fill(wanted.workload);
  await page.getByLabel("Seconds").fill(String(wanted.seconds));
  await page.getByLabel("Seeds").fill(String(wanted.seeds));
  for (const [at, kernel] of wanted.kernels.entries()) await page.getByLabel(`Kernel ${"ABC"[at]}`, { exact: true }).fill(kernel);
  await page.getByRole("button", { name: "Run" }).click();
  return drawn(page);
};
const drawn = async page => {
  await page.getByText(/runs in .* s, drawn in/).waitFor({ timeout: 120_000 });
  const frame = page.frameLocator("iframe");
  await frame.getByRole("heading", { name: "What changed" }).waitFor();
  return frame;
};
const scrollsNot = page => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
// At each width nothing is beyond the edge, and axe has nothing to say.
const fits = async (page, name) => {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    assert.ok(await scrollsNot(page), `${name} scrolls sideways at ${width} pixels`);
    await accessible(page, `${name} at ${width} pixels`);
  }
};
// Every link of the page to a file leads to one, and to a place in it.
const texts = new Map();
const linked = async (page, name) => {
  const links = await page.evaluate(() => [...document.querySelectorAll("a[href]")].map(link => link.href));
  const files = new Set(links.filter(link => link.startsWith("file:")));
  for (const link of files) {
    const { pathname, hash } = new URL(link), path = decodeURIComponent(pathname);
    if (!texts.has(path)) texts.set(path, existsSync(path) ? readFileSync(path, "utf8") : null);
    const text = texts.get(path), place = decodeURIComponent(hash.slice(1));
    assert.ok(text !== null, `${name} links to ${path}, which does not exist`);
    assert.ok(!place || text.includes(`id="${place}"`) || text.includes(`name="${place}"`), `${name} links to ${path}, which has no ${hash}`);
  }
};
const accessible = async (page, name = "") => {
  if (!await page.evaluate(() => Boolean(window.axe))) await page.addScriptTag({ path: axe });
  for (const frame of page.frames()) if (frame !== page.mainFrame()) await frame.addScriptTag({ path: axe });
  const { violations } = await page.evaluate(() => window.axe.run());
  assert.deepEqual(violations.map(({ id, nodes }) => `${name}: ${id}: ${nodes.map(node => node.target).join("; ")}`), []);
};

test("runs have the same digests as everywhere", { skip: process.env.DIGESTS ? false : "DIGESTS names no file" }, async () => {
  const lines = readFileSync(process.env.DIGESTS, "utf8").trim().split("\n").map(line => {
    const [, digest, machine, kernel, workload, ms, seed] = /^(\w+) .* ns  (\S+) (\S+) (.+) (\d+) ms seed (\d+)$/.exec(line);
    return { digest, asked: [machine, kernel, workload, Number(ms), Number(seed)] };
  });
  const chosen = lines.filter((_, at) => at % Math.floor(lines.length / 40) === 0).slice(0, 40);
  assert.equal(chosen.length, 40);
  const { page, close } = await open("index.html");
  for (const { digest, asked } of chosen) assert.equal(await page.evaluate(asked => window.schedtwin.ask("digest", asked), asked), digest, asked.join(" "));
  await close();
});

test("how long ten seconds of a phone take is told", async t => {
  const { page, close } = await open("index.html");
  const asked = ["pixel6", "linux-7.3-gki", "ui-phone", 10_000, 1];
  const ms = await page.evaluate(async asked => {
    await window.schedtwin.ask("digest", asked);
    const began = performance.now();
    await window.schedtwin.ask("digest", asked);
    return performance.now() - began;
  }, asked);
  t.diagnostic(`${asked.join(" ")}: ${(ms / 1e3).toFixed(2)} s`);
  await close();
});

for (const [width, scheme] of [[1280, "light"], [768, "dark"], [390, "dark"]]) {
  test(`at ${width} pixels: verdict, table, timeline, nothing beyond the edge`, async () => {
    const { page, close } = await open("index.html", { viewport: { width, height: 900 }, colorScheme: scheme });
    const frame = await experiment(page, SMALL);
    await frame.locator(".verdict").first().waitFor();
    await frame.locator("canvas").first().waitFor();
    await page.getByText("Change the machine or the workload").click();
    await page.getByText("A workload of your own").click();
    await page.getByLabel("Task of the workload").selectOption("touch");
    assert.ok(await scrollsNot(page), "the page scrolls sideways");
    assert.ok(await frame.locator("html").evaluate(html => html.scrollWidth <= html.clientWidth), "the result scrolls sideways");
    await accessible(page);
    if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/playground-${width}-${scheme}.png`, fullPage: true });
    await close();
  });
}

test("a click on the timeline tells decisions, and why the kernels part", async () => {
  const { page, close } = await open("index.html");
  const frame = await experiment(page, SMALL);
  const canvas = frame.locator("canvas").first();
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  for (let part = 0.3; part < 0.9; part += 0.05) {
    await canvas.click({ position: { x: 64 + (box.width - 64) * part, y: 50 } });
    await frame.locator(".why", { hasNotText: "asking the twin" }).filter({ hasText: "CPU 0" }).waitFor();
    if (/cpuidle|placement|schedutil/.test(await frame.locator(".why").textContent())) break;
  }
  assert.match(await frame.locator(".why").textContent(), /cpuidle|placement|schedutil/);
  await page.getByRole("button", { name: "First difference" }).click();
  await page.locator(".parts", { hasText: /first difference at/ }).waitFor();
  await close();
});

test("figures are saved as pictures, with their words", async () => {
  const { page, close } = await open("index.html");
  const frame = await experiment(page, SMALL);
  const saved = async form => {
    const [download] = await Promise.all([page.waitForEvent("download"), frame.getByRole("button", { name: `save Power as ${form}` }).click()]);
    assert.equal(download.suggestedFilename(), `Power.${form.toLowerCase()}`);
    if (process.env.PICTURES) await download.saveAs(`${process.env.PICTURES}/Power.${form.toLowerCase()}`);
    return readFileSync(await download.path());
  };
  const svg = String(await saved("SVG"));
  for (const part of [/^<svg [^>]*width="\d+"/, /<text[^>]*>Power</, /<text[^>]*>[\d.]+ mW</, /<rect[^>]* fill="rgb/]) assert.match(svg, part);
  assert.doesNotMatch(svg, /var\(--|NaN/);
  assert.deepEqual([...(await saved("PNG")).subarray(1, 4)], [...Buffer.from("PNG")]);
  await close();
});

test("the link holds the whole experiment", async () => {
  const { page, close } = await open("index.html");
  const frame = await experiment(page, { ...SMALL, seeds: 3 });
  const said = await frame.locator(".verdict").first().textContent();
  const link = page.url();
  assert.match(link, /#1\.[\d.]+\.[\w-]+$/);
  await close();
  const other = await open(`index.html${link.slice(link.indexOf("#"))}`);
  const again = await drawn(other.page);
  assert.equal(await again.locator(".verdict").first().textContent(), said);
  assert.equal(await other.page.getByLabel("Seeds").inputValue(), "3");
  await other.close();
});

test("numbers of the workload and settings of the machine are changed in the form", async () => {
  const { page, close } = await open("index.html", { viewport: { width: 390, height: 900 } });
  await page.getByText("Change the machine or the workload").click();
  // A built-in file becomes a file of the user's, with one number changed.
  await page.getByLabel("Task of the workload").selectOption("ui");
  const run = page.getByLabel("new-row/run", { exact: true });
  assert.equal(await run.inputValue(), "900");
  await run.fill("1800");
  await page.getByLabel("util_min", { exact: true }).fill("300");
  await page.getByLabel("util_max", { exact: true }).fill("100");
  await page.keyboard.press("Tab");
  await page.getByRole("alert").filter({ hasText: "is above" }).waitFor();
  assert.equal(await page.getByLabel("util_max", { exact: true }).inputValue(), "");
  await page.waitForFunction(() => /"util_min": 300,[^]*"run": 1800,/.test(document.querySelector("textarea").value));
  const row = page.getByRole("group", { name: "Change a setting of the machine" });
  await row.getByRole("combobox").first().fill("coupling");
  await row.getByLabel("to", { exact: true }).fill("false");
  await row.getByRole("button").click();
  assert.equal(await page.getByRole("combobox", { name: "Machine", exact: true }).inputValue(), "pixel6:coupling=false");
  await page.getByLabel("Seconds").fill("0.3");
  await page.getByRole("button", { name: "Run" }).click();
  const frame = await drawn(page);
  await frame.getByText(/A line in a lane is a clamp of the CPU's tasks/).waitFor();
  if (process.env.PICTURES) await frame.locator(".timeline").screenshot({ path: `${process.env.PICTURES}/clamps-390.png` });
  const link = page.url();
  await close();
  const other = await open(`index.html${link.slice(link.indexOf("#"))}`);
  await drawn(other.page);
  await other.page.getByText(/-m pixel6:coupling=false .* -w my-ui-phone.json/).waitFor();
  // Options of a benchmark are words of the form's line.
  await other.page.getByLabel("Workload, with its options").fill("messaging -g 4 -l 200");
  await other.page.keyboard.press("Tab");
  await other.page.getByText("Change the machine or the workload").click();
  const groups = other.page.getByLabel("group", { exact: true });
  assert.equal(await groups.inputValue(), "4");
  await groups.fill("2");
  await other.page.keyboard.press("Tab");
  await other.page.waitForFunction(() => document.querySelector("input").value === "messaging -g 2 -l 200");
  await other.close();
});

test("a run ends at once when asked, and another one begins", async () => {
  const { page, close } = await open("index.html");
  await page.getByLabel("Seconds").fill("600");
  await page.getByLabel("Seeds").fill("100");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("alert").filter({ hasText: "stopped" }).waitFor();
  await experiment(page, SMALL);
  await close();
});

test("a trace is replayed", async () => {
  const { page, close } = await open("index.html");
  await page.getByText("A workload of your own").click();
  await page.getByLabel("Replay a trace instead").setInputFiles(`${root}crates/schedtwin-cli/tests/replay/pipeline.txt`);
  const frame = await experiment(page, { ...SMALL, kernels: ["linux-6.12", "linux-7.3"] });
  await frame.getByRole("heading", { name: "How far the replays are the recording" }).waitFor();
  await page.getByText(/^schedtwin replay pipeline.txt -m pixel6/).waitFor();
  await page.getByRole("button", { name: "Without the trace" }).click();
  await experiment(page, SMALL);
  await close();
});

test("faults stand beside the form, all at once", async () => {
  const { page, close } = await open("index.html");
  await page.getByLabel("Kernel A", { exact: true }).fill("linux-6.12:hz=0");
  await page.getByLabel("Kernel B", { exact: true }).fill("linux-6.20");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByRole("alert").filter({ hasText: "`hz` is 0" }).filter({ hasText: "linux-6.20" }).waitFor();
  await close();
});

test("the keyboard alone changes a setting, runs and reads the timeline", async () => {
  const { page, close } = await open("index.html");
  const reach = async locator => {
    for (let presses = 0; presses < 60; presses++) {
      if (await locator.evaluate(element => element === element.ownerDocument.activeElement && element.ownerDocument.hasFocus())) return;
      await page.keyboard.press("Tab");
    }
    assert.fail("the keyboard does not reach it");
  };
  const row = page.getByRole("group", { name: "Change one setting of A" });
  await reach(row.getByRole("combobox").first());
  await page.keyboard.type("hz");
  await reach(row.getByLabel("to", { exact: true }));
  await page.keyboard.type("100");
  await reach(page.getByRole("button", { name: "Add as a kernel" }));
  await page.keyboard.press("Enter");
  assert.match(await page.getByLabel("Kernel C", { exact: true }).inputValue(), /hz=100$/);
  await reach(page.getByRole("button", { name: "Run" }));
  await page.keyboard.press("Enter");
  const frame = await drawn(page);
  await reach(frame.locator("canvas").first());
  const before = await frame.locator(".timeline output").textContent();
  await page.keyboard.press("+");
  assert.notEqual(await frame.locator(".timeline output").textContent(), before);
  await close();
});

test("the list of lessons fits and leads to them", async () => {
  const page = await browser.newPage();
  await page.goto(address("lessons.html"));
  await linked(page, "lessons.html");
  await fits(page, "lessons.html");
  await page.getByRole("listitem").getByRole("link").first().click();
  await page.getByRole("heading", { name: "Find out" }).waitFor();
  await page.close();
});

test("lessons show their numbers and run their experiment", async () => {
  const names = readdirSync(built).filter(name => name.startsWith("lesson-"));
  assert.ok(names.length >= 10, `${names}`);
  const listed = await (await browser.newPage()).goto(address("lessons.html")).then(answer => answer.text());
  for (const [at, name] of names.entries()) {
    assert.ok(listed.includes(name));
    const { page, close } = await open(name, { colorScheme: at % 2 ? "dark" : "light" });
    assert.doesNotMatch(await page.locator("article").textContent(), /\{\{/);
    await linked(page, name);
    await fits(page, name);
    await page.setViewportSize({ width: 390, height: 900 });
    if (name === names[0]) {
      await page.getByRole("button", { name: "Run" }).click();
      await drawn(page);
      if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/lesson-390.png`, fullPage: true });
    }
    await close();
  }
});

const chapters = folder => readdirSync(folder, { withFileTypes: true, recursive: true })
  .filter(entry => entry.isFile() && entry.name.endsWith(".html"))
  .map(entry => `${entry.parentPath}/${entry.name}`)
  .filter(path => !/\/site\/(api|playground)\/|\/(toc|print|404)\.html$/.test(path));

test("chapters of the book fit, and their links lead somewhere", { skip: existsSync(site) ? false : "cargo xtask site has not been run" }, async t => {
  const paths = chapters(site);
  assert.ok(paths.length > 30, `${paths}`);
  for (const [at, path] of paths.entries()) {
    const page = await browser.newPage({ colorScheme: at % 2 ? "dark" : "light" });
    await page.goto(pathToFileURL(path).href);
    await linked(page, path);
    await fits(page, path);
    await page.close();
  }
  t.diagnostic(`${paths.length} chapters`);
});
