// SPDX-License-Identifier: GPL-2.0-or-later
// The form of an experiment, the worker that computes it, and the page of its result. An experiment is the whole state: the link holds it.
"use strict";
(() => {
  const place = document.getElementById("playground");
  const START = { machine: "pixel6", kernels: ["linux-7.3-gki", "linux-7.3-gki:schedutil.rate_limit_us=10000"], workload: "ui-phone", seconds: 3, seeds: 3 };
  const EXAMPLES = [
    ["Runnable boosting, on a phone", { machine: "pixel6", kernels: ["linux-6.3", "linux-6.3+runnable-boost-v2"], workload: "ui-phone", seconds: 3, seeds: 3 }],
    ["A slower schedutil", START],
    ["EEVDF with longer slices, on a laptop", { machine: "laptop-8c16t", kernels: ["linux-7.3", "linux-7.3:base_slice_ns=10000000"], workload: "ui-phone", seconds: 2, seeds: 3 }],
    ["menu or teo, on a phone", { machine: "pixel6", kernels: ["linux-7.3-gki:cpuidle=menu", "linux-7.3-gki:cpuidle=teo"], workload: "ui-phone", seconds: 3, seeds: 3 }],
    ["CFS and EEVDF, messages on a desktop", { machine: "i7-10700", kernels: ["linux-6.1", "linux-6.12"], workload: "messaging -g 4 -l 200", seconds: null, seeds: 3 }],
  ];
  const LETTERS = "ABCDEFG";
  // Of the link: its form, then the version of the twin, then the experiment, packed.
  const LINK_FORM = "1";
  const TRACE_BYTES_MAX = 256 << 20;

  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const labelled = (text, field, kind = "") => element("label", { className: kind }, text, field);

  // ---- The worker: it has the twin. To end a run at once it is ended, and another one started.
  const worker = (() => {
    const source = `${window.schedtwinEngine.glue}
      let ran = null, id = 0;
      self.progressed = (done, expected) => postMessage({ id, progress: [done, expected] });
      self.panicked = message => postMessage({ id, panic: message });
      const answers = {
        catalogue: () => wasm_bindgen.catalogue(),
        digest: a => wasm_bindgen.digest(...a),
        settings: machine => wasm_bindgen.settings(machine),
        fields: workload => wasm_bindgen.fields(workload),
        withField: a => wasm_bindgen.with_field(...a),
        run: ({ request, trace }) => {
          ran?.free();
          ran = null;
          ran = trace ? wasm_bindgen.Playground.replay(trace.bytes, trace.name, request) : wasm_bindgen.Playground.run(request);
          return ran.command();
        },
        page: () => ran.page(),
        decisions: a => ran.decisions(...a),
        parting: () => ran.first_difference(),
      };
      onmessage = async ({ data }) => {
        id = data.id;
        try {
          if (data.ask === "start") { await wasm_bindgen({ module_or_path: data.with }); postMessage({ id, answer: true }); }
          else postMessage({ id, answer: answers[data.ask](data.with) });
        } catch (fault) { postMessage({ id, fault: String(fault?.message ?? fault) }); }
      };`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    let current = null, wasm = null, asked = new Map(), number = 0, watch = () => {};
    const bytes = async () => {
      const packed = Uint8Array.from(atob(window.schedtwinEngine.wasm), letter => letter.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
      return new Response(stream).arrayBuffer();
    };
    const post = (ask, data) => new Promise((resolve, reject) => {
      asked.set(++number, { resolve, reject });
      current.postMessage({ id: number, ask, with: data });
    });
    const start = async () => {
      wasm ??= WebAssembly.compile(await bytes());
      const module = await wasm;
      current = new Worker(address);
      current.onmessage = ({ data }) => {
        const waits = asked.get(data.id);
        if (data.progress) return watch(...data.progress);
        if (data.panic) { stop(`the twin panicked, which is a fault of its own: ${data.panic}`); return; }
        asked.delete(data.id);
        if ("fault" in data) waits?.reject(new Error(data.fault)); else waits?.resolve(data.answer);
      };
      current.onerror = event => stop(event.message);
      await post("start", module);
    };
    let started = null;
    const stop = why => {
      current?.terminate();
      current = started = null;
      for (const waits of asked.values()) waits.reject(new Error(why));
      asked = new Map();
    };
    const ask = async (what, data) => { await (started ??= start()); return post(what, data); };
    return { ask, stop, watch: listener => { watch = listener; } };
  })();
  window.schedtwin = { ask: worker.ask };

  // ---- The link.
  const packed = async text => {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  };
  const unpacked = async text => {
    const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(letters, letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).text();
  };
  let version = "";
  const link = async experiment => `#${LINK_FORM}.${version}.${await packed(JSON.stringify(experiment))}`;
  const ofLink = async () => {
    const found = /^#([^.]+)\.(.*)\.([\w-]+)$/.exec(location.hash);
    if (!found) return null;
    if (found[1] !== LINK_FORM) throw new Error(`this link has form ${found[1]}, and this page reads form ${LINK_FORM}`);
    const experiment = JSON.parse(await unpacked(found[3]));
    return { experiment, madeBy: found[2] };
  };

  // ---- The form.
  const machine = element("select"), workload = element("input", { spellcheck: false, autocomplete: "off" });
  const seconds = element("input", { type: "number", min: ".01", max: "600", step: "any" }), seeds = element("input", { type: "number", min: "1", max: "100" });
  const kernels = element("fieldset", {}, element("legend", { textContent: "Kernels, the first is the baseline: a release, then :settings and +patches" }));
  const file = element("textarea", { spellcheck: false, placeholder: "{ \"tasks\": { … } }" });
  const fileName = element("input", { value: "mine.json", spellcheck: false });
  const fault = element("p", { className: "fault" }), said = element("span", { className: "muted" }), bar = element("progress", { max: 1, value: 0, hidden: true });
  fault.setAttribute("role", "alert");
  said.setAttribute("role", "status");
  bar.setAttribute("aria-label", "runs that are complete");
  const run = element("button", { className: "main", type: "submit", textContent: "Run", disabled: true });
  const stop = element("button", { type: "button", textContent: "Stop", hidden: true });
  const trace = element("input", { type: "file" });
  const noTrace = element("button", { type: "button", textContent: "Without the trace", hidden: true });
  const parts = element("pre", { className: "parts", tabIndex: 0 }), frame = element("iframe", { title: "Result of the experiment" });
  parts.setAttribute("aria-label", "First difference");
  const command = element("code"), parting = element("button", { type: "button", textContent: "First difference" });
  const copy = element("button", { type: "button", textContent: "Copy link" }), save = element("button", { type: "button", textContent: "Save page" });
  const result = element("section", { className: "result", hidden: true },
    element("div", { className: "tools" }, command, parting, copy, save), parts, frame);
  result.setAttribute("aria-label", "Result");

  const kernelRows = () => [...kernels.querySelectorAll(".kernel")];
  const letters = () => kernelRows().forEach((row, at) => {
    row.querySelector("b").textContent = LETTERS[at];
    row.querySelector("input").setAttribute("aria-label", `Kernel ${LETTERS[at]}`);
    const remove = row.querySelector("button");
    remove.hidden = kernelRows().length === 1;
    remove.setAttribute("aria-label", `Remove kernel ${LETTERS[at]}`);
  });
  const addKernel = name => {
    const field = element("input", { value: name, spellcheck: false, autocomplete: "off" });
    field.setAttribute("list", "kernel-names");
    const remove = element("button", { type: "button", textContent: "×" });
    const row = element("div", { className: "kernel" }, element("b"), field, remove);
    remove.addEventListener("click", () => { row.remove(); letters(); });
    kernels.append(row);
    letters();
  };
  // A setting, chosen from a list, and its value: `NAME:KEY=VALUE` is what the button does something with.
  const settingRow = (id, label, example, does, act) => {
    const setting = element("input", { placeholder: example, spellcheck: false, autocomplete: "off" });
    const value = element("input", { spellcheck: false, autocomplete: "off" });
    const names = element("datalist", { id: `${id}-names` }), values = element("datalist", { id: `${id}-values` });
    const means = element("p", { className: "legend" }), change = element("button", { type: "button", textContent: does });
    setting.setAttribute("list", names.id);
    value.setAttribute("list", values.id);
    let settings = new Map();
    const tell = () => {
      const of = settings.get(setting.value.trim());
      values.replaceChildren(...(of?.arms ?? []).map(([word, meaning]) => new Option(meaning, word)));
      means.textContent = !of ? "" : [of.known_by && `${of.known_by}:`, of.help, of.range && `${of.range[0]} to ${of.range[1]} ${of.unit}`, of.value && `(now ${of.value})`].filter(Boolean).join(" ");
      value.placeholder = of?.arms ? of.arms.map(([word]) => word).join(", ") : of?.range ? `${of.range[0]} to ${of.range[1]}` : of?.value ?? "value";
    };
    setting.addEventListener("input", tell);
    change.addEventListener("click", () => {
      const [key, to] = [setting, value].map(field => field.value.trim());
      fault.textContent = key && to ? "" : "name a setting and its value first";
      if (key && to) act(base => {
        // The same setting once more takes the place of the first one.
        const [name, ...rest] = base.split(":"), others = rest.join(":").split(/,(?![^[]*\])/).filter(one => one && !one.startsWith(`${key}=`));
        return `${name}:${[...others, `${key}=${to}`].join(",")}`;
      });
    });
    const offer = list => {
      settings = new Map(list.map(one => [one.path, one]));
      names.replaceChildren(...list.map(one => new Option(one.help, one.path)));
      tell();
    };
    const row = element("div", { className: "row" }, labelled(label, setting), labelled("to", value), change, names, values);
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", label);
    return { parts: [row, means], offer };
  };
  const ofKernel = settingRow("kernel-setting", "Change one setting of A", "schedutil.rate_limit_us", "Add as a kernel", set => {
    if (kernelRows().length >= LETTERS.length) { fault.textContent = `a page compares at most ${LETTERS.length} kernels`; return; }
    addKernel(set(kernelRows()[0].querySelector("input").value.trim()));
  });
  const ofMachine = settingRow("machine-setting", "Change a setting of the machine", "coupling", "Change the machine", set => { choose(set(machine.value)); changed(); });
  const choose = on => {
    if (![...machine.options].some(option => option.value === on)) machine.append(new Option(on, on));
    machine.value = on;
  };

  // The fields of the workload: those of one task or job at a time.
  const owner = element("select"), grid = element("div", { className: "fields" }), noFields = element("p", { className: "legend" });
  const ownerLabel = labelled("Task of the workload", owner);
  const changes = element("details", {}, element("summary", { textContent: "Change the machine or the workload" }),
    element("div", { className: "changes" }, ...ofMachine.parts, ownerLabel, grid, noFields));
  // Each change begins with what the one before it made of the workload.
  let fields = [], turns = Promise.resolve();
  const showFields = () => {
    const shown = fields.filter(field => field.of === owner.value);
    grid.replaceChildren(...shown.map(field => {
      const input = field.arms ? element("select", {}, ...field.arms.map(([word]) => new Option(word)))
        : element("input", { type: field.number ? "number" : "text", step: "any", placeholder: field.default ?? "not set" });
      input.value = field.value ?? "";
      input.setAttribute("aria-label", field.name);
      input.addEventListener("change", () => turns = turns.then(async () => {
        try {
          fault.textContent = "";
          put(JSON.parse(await worker.ask("withField", [JSON.stringify(workloadNow()), field.at, input.value])));
          field.value = input.value;
        } catch (error) {
          fault.textContent = error.message;
          input.value = field.value ?? "";
        }
      }));
      const help = element("small", { id: `field-${field.at}`, textContent: field.help });
      input.setAttribute("aria-describedby", help.id);
      return element("label", {}, field.name, input, help);
    }));
  };
  owner.addEventListener("change", showFields);
  // What can be changed, of what stands in the form now.
  const changed = async () => {
    grid.replaceChildren();
    try { ofMachine.offer(JSON.parse(await worker.ask("settings", machine.value))); } catch { ofMachine.offer([]); }
    try {
      fields = JSON.parse(await worker.ask("fields", JSON.stringify(workloadNow()))).map((field, at) => ({ ...field, at }));
      noFields.textContent = fields.length ? "" : "This workload has no numbers to change.";
    } catch (error) {
      fields = [];
      noFields.textContent = error.message;
    }
    const chosen = owner.value, owners = [...new Set(fields.map(field => field.of))];
    owner.replaceChildren(...owners.map(name => new Option(name)));
    if (owners.includes(chosen)) owner.value = chosen;
    ownerLabel.hidden = owners.length < 2;
    showFields();
  };
  for (const field of [machine, workload, file]) field.addEventListener("change", changed);

  const another = element("button", { type: "button", textContent: "Add a kernel" });
  another.addEventListener("click", () => { if (kernelRows().length < LETTERS.length) addKernel(kernelRows().at(-1).querySelector("input").value); });
  const own = element("details", {}, element("summary", { textContent: "A workload of your own: an rt-app file, or a recorded trace" }),
    labelled("Name of the rt-app file", fileName), labelled("rt-app's JSON", file),
    element("div", { className: "row" }, labelled("Replay a trace instead: ftrace text, trace.dat, perf.data, Perfetto; packed, too. It stays in this page", trace), noTrace));
  const traced = () => { noTrace.hidden = !trace.files.length; };
  trace.addEventListener("change", traced);
  noTrace.addEventListener("click", () => { trace.value = ""; traced(); });
  // A trace may be dropped anywhere.
  addEventListener("dragover", event => event.preventDefault());
  addEventListener("drop", event => {
    event.preventDefault();
    if (!event.dataTransfer.files.length) return;
    trace.files = event.dataTransfer.files;
    own.open = true;
    traced();
    said.textContent = `${trace.files[0].name}: Run replays it on ${machine.value}`;
  });
  const examples = element("select");
  examples.append(new Option("Examples…", ""), ...EXAMPLES.map(([name], at) => new Option(name, at)));
  examples.setAttribute("aria-label", "Examples");
  examples.addEventListener("change", () => { if (examples.value) { fill(EXAMPLES[examples.value][1]); examples.value = ""; form.requestSubmit(); } });
  workload.setAttribute("list", "workload-names");
  const form = element("form", { className: "experiment" },
    element("div", { className: "row" }, labelled("Machine", machine), labelled("Workload, with its options", workload, "wide"),
      labelled("Seconds", seconds, "short"), labelled("Seeds", seeds, "short")),
    kernels, another, ...ofKernel.parts, changes, own,
    element("div", { className: "status" }, run, stop, place.dataset.request ? "" : examples, bar, said), fault);

  const fill = ({ machine: on, kernels: names, workload: work, seconds: length, seeds: count }) => {
    choose(on);
    kernelRows().forEach(row => row.remove());
    names.forEach(addKernel);
    own.open = typeof work === "object";
    put(work);
    seconds.value = length ?? "";
    seeds.value = count;
    changed();
  };
  // One workload is in use: the words, or without any the file.
  const put = work => {
    const isText = typeof work === "object";
    file.value = isText ? work.text : "";
    workload.value = isText ? "" : work;
    if (isText) fileName.value = work.name;
    nameFile();
  };
  const nameFile = () => { workload.placeholder = file.value.trim() ? `${fileName.value.trim()}, the file below` : "a name"; };
  for (const field of [file, fileName]) field.addEventListener("input", () => { if (file.value.trim()) workload.value = ""; nameFile(); });
  const workloadNow = () => workload.value.trim() || !file.value.trim() ? workload.value.trim() : { name: fileName.value.trim() || "mine.json", text: file.value };
  const read = () => ({
    machine: machine.value,
    kernels: kernelRows().map(row => row.querySelector("input").value.trim()),
    workload: workloadNow(),
    ...(seconds.value ? { seconds: Number(seconds.value) } : {}),
    seeds: Number(seeds.value),
  });

  // ---- Running.
  const busy = is => { run.disabled = is; stop.hidden = bar.hidden = !is; parting.disabled = is; };
  const grow = () => { frame.style.height = `${frame.contentDocument.documentElement.scrollHeight + 2}px`; };
  frame.addEventListener("load", () => {
    if (!frame.contentDocument?.body) return;
    new ResizeObserver(grow).observe(frame.contentDocument.body);
    grow();
  });
  // The result's timeline asks here what it does not have.
  window.askTwin = async (kernel, from, to) => JSON.parse(await worker.ask("decisions", [kernel, from, to]));
  worker.watch((done, expected) => { bar.max = expected; bar.value = done; said.textContent = `${done} of ${expected} runs`; });
  let page = "";
  const start = async () => {
    fault.textContent = parts.textContent = "";
    busy(true);
    bar.removeAttribute("value");
    said.textContent = "starting";
    const began = performance.now();
    try {
      const experiment = read(), file = trace.files[0];
      if (file && file.size > TRACE_BYTES_MAX) throw new Error(`${file.name} has more than ${TRACE_BYTES_MAX >> 20} MiB: too much for a page; schedtwin replay reads it`);
      const recorded = file && { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) };
      command.textContent = await worker.ask("run", { request: JSON.stringify(experiment), trace: recorded });
      const ran = performance.now();
      said.textContent = "drawing";
      page = await worker.ask("page");
      result.hidden = false;
      frame.srcdoc = page;
      parting.hidden = experiment.kernels.length < 2;
      const all = [began, ran, performance.now()].map(time => time / 1e3);
      said.textContent = `${experiment.kernels.length * experiment.seeds} runs in ${(all[1] - all[0]).toFixed(1)} s, drawn in ${(all[2] - all[1]).toFixed(1)} s`;
      // A link holds no recording.
      history.replaceState(null, "", file ? location.pathname : await link(experiment));
      copy.hidden = Boolean(file);
    } catch (error) {
      fault.textContent = error.message;
      said.textContent = "";
    }
    busy(false);
  };
  form.addEventListener("submit", event => { event.preventDefault(); start(); });
  // Ending the worker ends all that it was asked.
  stop.addEventListener("click", () => { worker.stop("stopped"); changed(); });
  parting.addEventListener("click", async () => {
    parts.textContent = "running both…";
    try { parts.textContent = await worker.ask("parting"); } catch (error) { parts.textContent = error.message; }
  });
  copy.addEventListener("click", async () => {
    const address = location.href;
    try { await navigator.clipboard.writeText(address); said.textContent = "the link is copied: it holds the whole experiment"; } catch { prompt("The link:", address); }
  });
  save.addEventListener("click", () => {
    const made = element("a", { href: URL.createObjectURL(new Blob([page], { type: "text/html" })), download: "schedtwin.html" });
    made.click();
    URL.revokeObjectURL(made.href);
  });

  // ---- Start.
  const list = (id, entries) => element("datalist", { id }, ...entries.map(([name, about]) => new Option(about, name)));
  (async () => {
    place.append(form, result);
    said.textContent = "loading the twin";
    let opened = null;
    try {
      const catalogue = JSON.parse(await worker.ask("catalogue"));
      version = catalogue.version;
      machine.append(...catalogue.machines.map(([name, about]) => new Option(`${name}: ${about}`, name)));
      ofKernel.offer(catalogue.settings);
      place.append(list("kernel-names", catalogue.kernels), list("workload-names", catalogue.workloads));
      opened = await ofLink();
    } catch (error) { fault.textContent = error.message; }
    fill(opened?.experiment ?? (place.dataset.request ? JSON.parse(place.dataset.request) : START));
    run.disabled = false;
    said.textContent = opened && opened.madeBy !== version ? `this link was made by version ${opened.madeBy}; this page is version ${version}, and results may differ` : "";
    if (opened) start();
  })();
})();
