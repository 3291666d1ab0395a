// Sorts and filters the long tables, and shows the runs behind an interval. Without it the page is the same, in its first order.
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
