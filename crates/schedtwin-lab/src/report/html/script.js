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

// A plot as a picture for a paper: its shapes with their colours in place, its words as text of the SVG.
for (const plot of document.querySelectorAll(".plot")) {
  const shapes = plot.querySelector("svg"), LEFT = 70, BELOW = 60, ABOVE = 24;
  const [, , wide, high] = shapes.getAttribute("viewBox").split(" ").map(Number);
  const picture = () => {
    const space = shapes.namespaceURI, whole = document.createElementNS(space, "svg");
    const [width, height] = [wide + LEFT + 20, high + ABOVE + BELOW];
    for (const [key, value] of Object.entries({ xmlns: space, viewBox: `0 0 ${width} ${height}`, width, height })) whole.setAttribute(key, value);
    const copy = document.createElementNS(space, "g");
    copy.setAttribute("transform", `translate(${LEFT} ${ABOVE})`);
    copy.append(...shapes.cloneNode(true).children);
    // The page's style is not in the file.
    const from = [...shapes.querySelectorAll("*")], to = [...copy.querySelectorAll("*")];
    from.forEach((one, at) => {
      const look = getComputedStyle(one);
      for (const key of ["fill", "fill-opacity", "stroke", "stroke-width"]) to[at].setAttribute(key, look.getPropertyValue(key));
    });
    const write = (text, x, y, anchor, turn = "") => {
      const words = document.createElementNS(space, "text");
      for (const [key, value] of Object.entries({ x, y, "text-anchor": anchor, "font-family": "sans-serif", "font-size": 15, fill: getComputedStyle(plot).color, transform: turn })) words.setAttribute(key, value);
      words.textContent = text;
      whole.append(words);
    };
    whole.append(copy);
    const part = one => [parseFloat(one.style.left) / 100, parseFloat(one.style.top) / 100];
    for (const one of plot.querySelectorAll("span")) {
      const [x, y] = part(one), up = one.classList.contains("up");
      write(one.textContent, LEFT + x * wide + (up ? -6 : 10), ABOVE + y * high + (up ? 5 : -10), up ? "end" : "start");
    }
    for (const one of plot.nextElementSibling?.matches(".ticks") ? plot.nextElementSibling.children : []) write(one.textContent, LEFT + part(one)[0] * wide, ABOVE + high + 20, "middle");
    write(plot.dataset.x, LEFT + wide / 2, ABOVE + high + 46, "middle");
    write(plot.dataset.y, -(ABOVE + high / 2), 16, "middle", "rotate(-90)");
    return new XMLSerializer().serializeToString(whole);
  };
  const drawn = async () => {
    const image = new Image(), canvas = document.createElement("canvas");
    image.src = `data:image/svg+xml,${encodeURIComponent(picture())}`;
    await image.decode();
    canvas.width = 2 * image.width;
    canvas.height = 2 * image.height;
    const pen = canvas.getContext("2d");
    pen.fillStyle = getComputedStyle(document.body).backgroundColor;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(content => saveAs(content, "figure.png"));
  };
  const button = (text, act) => {
    const made = Object.assign(document.createElement("button"), { type: "button", className: "save", textContent: text });
    made.addEventListener("click", act);
    return made;
  };
  const tools = document.createElement("p");
  tools.append(button("save as SVG", () => saveAs(new Blob([picture()], { type: "image/svg+xml" }), "figure.svg")), button("save as PNG", drawn));
  plot.before(tools);
}
