// Sorts and filters the long tables, shows the runs behind an interval, and saves figures. Without it the page is the same, in its first order.
for (const box of document.querySelectorAll("form.tools")) {
  const table = box.nextElementSibling.querySelector("table");
  const body = table.tBodies[0], rows = [...body.rows];
  const text = box.querySelector("[type=search]"), changed = box.querySelector("[type=checkbox]");
  const count = box.querySelector("output");
  const filter = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const name = row.cells[0].textContent.toLowerCase();
      row.hidden = !words.every(word => name.includes(word)) || (changed.checked && row.dataset.changed !== "true");
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length} rows`;
  };
  text.addEventListener("input", filter);
  changed.addEventListener("change", filter);
  box.hidden = false;
  filter();
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    if (head.dataset.sort === "no") return;
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const order = { none: "descending", descending: "ascending", ascending: "none" }[head.ariaSort || "none"];
      heads.forEach(other => other.removeAttribute("aria-sort"));
      if (order !== "none") head.setAttribute("aria-sort", order);
      const key = row => {
        const value = row.cells[at].dataset.value;
        return value !== undefined ? Math.abs(+value) : at < 2 ? row.cells[at].textContent : -1;
      };
      const sign = order === "ascending" ? 1 : -1;
      const sorted = order === "none" ? rows : [...rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        return sign * (x < y ? -1 : x > y ? 1 : 0);
      });
      body.append(...sorted);
    });
  });
}

// Hands a file to the browser.
function saveAs(content, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A figure as a picture for a paper: what the page shows of it, with its colours in place and its words as text of the SVG.
function picture(figure) {
  const space = figure.querySelector("svg").namespaceURI, page = figure.getBoundingClientRect(), MARGIN = 8;
  const made = (name, values) => {
    const one = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(values)) one.setAttribute(key, value);
    return one;
  };
  const [width, height] = [page.width + 2 * MARGIN, page.height + 2 * MARGIN].map(Math.ceil);
  const whole = made("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
  const box = ({ left, top, width, height }) => ({ x: left - page.left + MARGIN, y: top - page.top + MARGIN, width, height });
  for (const one of figure.querySelectorAll("svg, .swatch")) {
    const place = box(one.getBoundingClientRect());
    if (one.matches(".swatch")) {
      const { backgroundColor, opacity } = getComputedStyle(one);
      whole.append(made("rect", { ...place, fill: backgroundColor, "fill-opacity": opacity }));
      continue;
    }
    const copy = one.cloneNode(true), from = one.querySelectorAll("*");
    for (const [key, value] of Object.entries(place)) copy.setAttribute(key, value);
    // The page's style is not in the file.
    copy.querySelectorAll("*").forEach((shape, at) => {
      const look = getComputedStyle(from[at]);
      for (const key of ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "vector-effect"]) shape.setAttribute(key, look.getPropertyValue(key));
    });
    whole.append(copy);
  }
  const words = document.createTreeWalker(figure, NodeFilter.SHOW_TEXT), part = document.createRange();
  while (words.nextNode()) {
    const text = words.currentNode, around = text.parentElement;
    if (around.closest("svg")) continue;
    const { color, fontSize, fontWeight } = getComputedStyle(around);
    // A line of the page is one text.
    let line, top;
    for (const { index, 0: word } of text.data.matchAll(/\S+/g)) {
      part.setStart(text, index);
      part.setEnd(text, index + word.length);
      const at = part.getBoundingClientRect();
      if (line && at.top === top) line.textContent += ` ${word}`;
      else {
        const { x, y, height } = box(at);
        line = made("text", { x, y: y + 0.77 * height, fill: color, "font-family": "sans-serif", "font-size": fontSize, "font-weight": fontWeight });
        [line.textContent, top] = [word, at.top];
        whole.append(line);
      }
    }
  }
  return { text: new XMLSerializer().serializeToString(whole), width, height };
}

for (const figure of document.querySelectorAll("figure")) {
  const name = figure.querySelector("h2").textContent;
  const drawn = async () => {
    const { text, width, height } = picture(figure), image = new Image(), canvas = document.createElement("canvas");
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    await image.decode();
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    const pen = canvas.getContext("2d");
    pen.fillStyle = getComputedStyle(document.body).backgroundColor;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(content => saveAs(content, `${name}.png`));
  };
  const button = (form, act) => {
    const made = Object.assign(document.createElement("button"), { type: "button", className: "save", textContent: form, ariaLabel: `save ${name} as ${form}` });
    made.addEventListener("click", act);
    return made;
  };
  const tools = document.createElement("p");
  tools.append(button("SVG", () => saveAs(new Blob([picture(figure).text], { type: "image/svg+xml" }), `${name}.svg`)), button("PNG", drawn));
  figure.after(tools);
}
