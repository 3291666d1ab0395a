// Draws the runs of a page, see timeline.rs.
for (const box of document.querySelectorAll(".timeline")) (async () => {
  const bytes = Uint8Array.from(atob(box.dataset.packed), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const data = JSON.parse(await new Response(stream).text());
  const why = box.querySelector(".why"), said = box.querySelector("output"), choice = box.querySelector("select");
  const CPU = 15, CLOCK = 16, LEFT = 64, HEAD = 20;
  const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let from = 0, to = Math.max(...data.kernels.map(kernel => kernel.end));
  const end = to;
  const runs = data.kernels.map((kernel, number) => {
    const lanes = kernel.lanes.map(flat => {
      const stays = [];
      for (let at = 0, time = 0; at < flat.length; at += 4) {
        const begin = time + flat[at], stop = begin + flat[at + 2];
        stays.push({ idle: [time, begin, flat[at + 1] - 1], begin, stop, task: flat[at + 3] });
        time = stop;
      }
      return stays;
    });
    const clocks = kernel.clocks.map(([name, cpu, flat]) => {
      const steps = [];
      for (let at = 0, time = 0; at < flat.length; at += 2) steps.push([time += flat[at], flat[at + 1]]);
      return { name, cpu, steps, top: Math.max(1, ...steps.map(step => step[1])) };
    });
    const clamps = kernel.clamps.map(flat => {
      const steps = [];
      for (let at = 0, time = 0; at < flat.length; at += 3) steps.push([time += flat[at], flat[at + 1], flat[at + 2]]);
      return steps;
    });
    // From the top: of each CPU its lane, above the first of a domain the domain's clock.
    let y = HEAD;
    const rows = lanes.map((_, cpu) => {
      const clock = clocks.find(one => one.cpu === cpu);
      if (clock) { clock.y = y; y += CLOCK + 2; }
      y += CPU;
      return y - CPU;
    });
    const canvas = document.createElement("canvas");
    canvas.height = y + 2;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `CPUs over time under ${kernel.name}; arrows pan, + and - zoom`);
    box.querySelector(".canvases").append(canvas);
    return { kernel, number, lanes, clamps, clocks, rows, canvas, height: y + 2 };
  });
  for (const name of [...new Set(data.kernels.flatMap(kernel => kernel.tasks))].sort()) choice.append(new Option(name, name));
  // The first stay that ends after a time.
  const after = (stays, time) => {
    let low = 0, high = stays.length;
    while (low < high) { const mid = (low + high) >> 1; stays[mid].stop <= time ? low = mid + 1 : high = mid; }
    return low;
  };
  const seconds = us => (us / 1e6).toFixed(6);
  const hue = {};
  const colour = (name, chosen) => {
    if (chosen) return name === chosen ? style("--bad") : style("--line");
    hue[name] ??= [...name.replace(/[-_]?\d+$/, "")].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 7);
    return `hsl(${hue[name]} 55% 52%)`;
  };
  const draw = () => {
    const ratio = window.devicePixelRatio || 1, chosen = choice.value;
    const [fg, muted, card, seq, good] = ["--fg", "--muted", "--card", "--seq", "--good"].map(style);
    for (const run of runs) {
      const { canvas, lanes, clamps, clocks, rows, kernel, height } = run;
      const width = canvas.parentElement.clientWidth;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      pen.font = "11px system-ui, sans-serif";
      const x = us => LEFT + (us - from) / (to - from) * (width - LEFT);
      pen.fillStyle = fg;
      pen.fillText(`${String.fromCharCode(65 + run.number)}  ${kernel.name}`, 2, 12);
      pen.fillStyle = card;
      pen.fillRect(LEFT, HEAD, width - LEFT, height - HEAD - 2);
      lanes.forEach((stays, cpu) => {
        const y = rows[cpu];
        pen.fillStyle = muted;
        pen.fillText(`CPU ${cpu}`, 2, y + 11);
        // Behind the last piece how busy the CPU was.
        pen.fillStyle = seq;
        const { busy, bin } = kernel, share = busy[cpu] ?? [];
        for (let at = Math.floor(Math.max(from, kernel.to) / bin); at < share.length && at * bin < to; at++) {
          const begin = Math.max(LEFT, x(Math.max(at * bin, kernel.to))), high = Math.min(1, share[at] / 100) * (CPU - 2);
          if (share[at]) pen.fillRect(begin, y + CPU - 2 - high, Math.max(.8, Math.min(width, x((at + 1) * bin)) - begin), high);
        }
        let painted = -1;
        for (let at = after(stays, from); at < stays.length && stays[at].idle[0] < to; at++) {
          const stay = stays[at], [since, until, state] = stay.idle;
          if (state >= 0 && x(until) - x(since) > 1) {
            pen.globalAlpha = .3 / (1 + 2 * state);
            pen.fillStyle = good;
            pen.fillRect(Math.max(LEFT, x(since)), y, x(until) - Math.max(LEFT, x(since)), CPU - 2);
            pen.globalAlpha = 1;
          }
          const begin = Math.max(LEFT, x(stay.begin)), stop = Math.min(width, x(stay.stop));
          const name = kernel.tasks[stay.task];
          // What is narrower than a point is drawn once a point, but for the chosen task.
          if (stop - begin < 1 && begin - painted < .7 && name !== chosen) continue;
          if (begin >= width || stop < LEFT) continue;
          painted = begin;
          pen.fillStyle = colour(name, chosen);
          pen.fillRect(begin, y, Math.max(.8, stop - begin), CPU - 2);
          if (stop - begin > 34) {
            pen.save();
            pen.beginPath();
            pen.rect(begin, y, stop - begin, CPU);
            pen.clip();
            pen.fillStyle = "#fff";
            pen.fillText(name, begin + 3, y + 10.5);
            pen.restore();
          }
        }
      });
      clamps.forEach((steps, cpu) => {
        const level = part => rows[cpu] + (CPU - 2) * (1 - part / 1024);
        pen.strokeStyle = fg;
        // The least where it is above 0, the most where it is below 1024.
        for (const [which, none, dash] of [[1, 0, []], [2, 1024, [3, 2]]]) {
          pen.setLineDash(dash);
          pen.beginPath();
          steps.forEach((step, at) => {
            const [begin, stop] = [Math.max(from, step[0]), Math.min(to, steps[at + 1]?.[0] ?? kernel.to)];
            if (step[which] === none || stop <= begin) return;
            pen.moveTo(x(begin), level(step[which]));
            pen.lineTo(x(stop), level(step[which]));
          });
          pen.stroke();
        }
        pen.setLineDash([]);
      });
      for (const { name, y, steps, top } of clocks) {
        pen.fillStyle = muted;
        pen.fillText(name, 2, y + 11);
        pen.strokeStyle = seq;
        pen.beginPath();
        let last = null;
        const level = mhz => y + CLOCK - 1 - mhz / top * (CLOCK - 3);
        for (const [time, mhz] of steps) {
          if (time > to) break;
          if (last !== null && time >= from) { pen.lineTo(Math.max(LEFT, x(time)), level(last)); }
          if (time >= from) pen.lineTo(x(time), level(mhz));
          else { pen.beginPath(); pen.moveTo(LEFT, level(mhz)); }
          last = mhz;
        }
        if (last !== null) pen.lineTo(x(Math.min(to, kernel.to)), level(last));
        pen.stroke();
      }
      if (data.parted !== null && data.parted >= from && data.parted <= to) {
        pen.strokeStyle = style("--bad");
        pen.setLineDash([4, 3]);
        pen.beginPath();
        pen.moveTo(x(data.parted), HEAD);
        pen.lineTo(x(data.parted), height);
        pen.stroke();
      }
    }
    said.textContent = `${seconds(from)} to ${seconds(to)} s`;
  };
  const show = (a, b) => {
    const span = Math.min(end, Math.max(20, b - a));
    from = Math.min(Math.max(0, a), end - span);
    to = from + span;
    draw();
  };
  const zoom = (factor, around = (from + to) / 2) => show(around - (around - from) * factor, around + (to - around) * factor);
  const pan = part => show(from + part * (to - from), to + part * (to - from));
  const acts = {
    in: () => zoom(.5), out: () => zoom(2), left: () => pan(-.5), right: () => pan(.5), all: () => show(0, end),
    wait: () => {
      const run = runs.find(run => run.kernel.wait), [woken, ran, cpu] = run.kernel.wait;
      show(woken - (ran - woken), ran + (ran - woken));
      tell(run, ran + 1, cpu);
    },
    // All kernels below each other, as they are shown.
    save: () => {
      const all = runs.map(run => run.canvas), whole = document.createElement("canvas");
      whole.width = Math.max(...all.map(one => one.width));
      whole.height = all.reduce((sum, one) => sum + one.height, 0);
      const pen = whole.getContext("2d");
      pen.fillStyle = style("--bg");
      pen.fillRect(0, 0, whole.width, whole.height);
      let y = 0;
      for (const one of all) { pen.drawImage(one, 0, y); y += one.height; }
      whole.toBlob(picture => saveAs(picture, "timeline.png"));
    },
    parted: () => { show(data.parted - 3000, data.parted + 3000); tell(runs[0], data.parted, -1); },
  };
  for (const button of box.querySelectorAll("[data-do]")) button.addEventListener("click", acts[button.dataset.do]);
  const tell = (run, time, cpu) => {
    const { kernel, lanes, clamps, number } = run, lines = [`${String.fromCharCode(65 + number)} at ${seconds(time)} s`];
    let [begin, stop] = [time, time];
    if (cpu >= 0) {
      const stay = lanes[cpu][after(lanes[cpu], time)];
      if (stay && stay.begin <= time) {
        [begin, stop] = [stay.begin, stay.stop];
        lines.push(`CPU ${cpu}: ${kernel.tasks[stay.task]} from ${seconds(begin)} for ${stop - begin} us`);
        const asked = clamps[cpu].findLast(step => step[0] <= time);
        if (asked) lines.push(`clamps of its tasks: at least ${asked[1]}, at most ${asked[2]} of 1024`);
      } else lines.push(`CPU ${cpu}: idle${stay && stay.idle[2] >= 0 ? `, state ${stay.idle[2]}` : ""}`);
    }
    // What was decided on this CPU in this time and a millisecond before, or anywhere at this time.
    const window = [begin - 1000, stop + 100], on = entry => cpu < 0 || entry[1] === cpu;
    const near = kernel.told.filter(entry => entry[0] >= window[0] && entry[0] <= window[1] && on(entry));
    const say = entries => { why.textContent = [...lines, "", ...entries.slice(-40).map(entry => entry[2])].join("\n"); };
    if (near.length) return say(near);
    // Beside the twin itself, it is asked.
    const ask = parent.askTwin;
    if (ask) {
      why.textContent = [...lines, "", "asking the twin"].join("\n");
      ask(number, ...window).then(entries => {
        const told = entries.filter(on);
        say(told.length ? told : [[0, 0, "nothing was decided here"]]);
      }, fault => say([[0, 0, fault.message]]));
      return;
    }
    lines.push("", `schedtwin explain FILE --at ${seconds(time)}s --window 1ms${cpu >= 0 ? ` --cpu ${cpu}` : ""}`, "prints what was decided here; FILE is what run --record wrote.");
    why.textContent = lines.join("\n");
  };
  for (const run of runs) {
    const { canvas, rows } = run;
    const time = event => from + (event.offsetX - LEFT) / (canvas.clientWidth - LEFT) * (to - from);
    canvas.addEventListener("wheel", event => {
      if (!event.ctrlKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / 800);
      else zoom(event.deltaY > 0 ? 1.25 : .8, time(event));
      event.preventDefault();
    }, { passive: false });
    let held = null;
    canvas.addEventListener("pointerdown", event => { held = { x: event.offsetX, from, to, moved: false }; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", event => {
      if (!held) return;
      const by = (held.x - event.offsetX) / (canvas.clientWidth - LEFT) * (held.to - held.from);
      held.moved ||= Math.abs(held.x - event.offsetX) > 3;
      if (held.moved) show(held.from + by, held.to + by);
    });
    canvas.addEventListener("pointerup", event => {
      if (held && !held.moved) tell(run, time(event), rows.findIndex(y => event.offsetY >= y && event.offsetY < y + CPU));
      held = null;
    });
    canvas.addEventListener("keydown", event => {
      const act = { ArrowLeft: acts.left, ArrowRight: acts.right, "+": acts.in, "=": acts.in, "-": acts.out, 0: acts.all }[event.key];
      if (act) { act(); event.preventDefault(); }
    });
  }
  choice.addEventListener("change", draw);
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  box.hidden = false;
  draw();
})();
