"use strict";
// Everything on the page can be read without this script: it adds a switch for light and dark, values under the
// pointer, and curves that can be hidden. Values are read off the curves themselves.
(() => {
  const root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const button = document.createElement("button");
  const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.type = "button";
  button.title = "Switch between light and dark";
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  document.querySelector("header").append(button);
  name();

  const axis = (words) => {
    const [low, high, kind] = words.split(" ");
    const [a, b] = [Number(low), Number(high)];
    return kind === "log" ? (s) => a * (b / a) ** s : (s) => a + (b - a) * s;
  };
  const points = (path) => [...path.getAttribute("d").matchAll(/[ML](\S+) ([^ML]+)/g)].map((m) => [+m[1], +m[2]]);
  const written = (v) => Number.isInteger(v) ? String(v) : String(Number(v.toPrecision(4)));

  for (const chart of document.querySelectorAll(".chart")) {
    const svg = chart.querySelector(".drawing svg");
    const lines = [...svg.querySelectorAll(".line[data-label]")];
    for (const entry of chart.querySelectorAll(".legend li")) {
      const line = lines.find((l) => l.dataset.label === entry.textContent);
      if (!line) continue;
      entry.tabIndex = 0;
      entry.setAttribute("role", "button");
      entry.setAttribute("aria-pressed", "true");
      const toggle = () => {
        const visible = entry.getAttribute("aria-pressed") !== "true";
        entry.setAttribute("aria-pressed", String(visible));
        line.style.display = visible ? "" : "none";
      };
      entry.addEventListener("click", toggle);
      entry.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); toggle(); } });
    }
    if (!lines.length) continue;
    const x = axis(svg.dataset.x), y = axis(svg.dataset.y);
    const unit = chart.querySelector(".across-label").textContent;
    const curves = lines.map((line) => ({ line, label: line.dataset.label, at: points(line) }));
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    svg.parentNode.append(tip);
    const cursor = svg.querySelector(".grid").cloneNode(false);
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("d", "");
    svg.append(cursor);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const here = 1000 * (event.clientX - box.left) / box.width;
      const near = (at) => at.reduce((best, p) => Math.abs(p[0] - here) < Math.abs(best[0] - here) ? p : best, at[0]);
      const shown = curves.filter((c) => c.at.length && c.line.style.display !== "none").map((c) => [c.label, near(c.at)]);
      if (!shown.length) return;
      const place = shown[0][1][0];
      tip.replaceChildren(...[`${unit}: ${written(x(place / 1000))}`, ...shown.map(([label, p]) => `${label}: ${written(y(1 - p[1] / 1000))}`)]
        .map((text) => Object.assign(document.createElement("div"), { textContent: text })));
      tip.hidden = false;
      const left = place / 1000 * box.width;
      tip.style.left = left < box.width / 2 ? `${left + 10}px` : "";
      tip.style.right = left < box.width / 2 ? "" : `${box.width - left + 10}px`;
      cursor.setAttribute("d", `M${place} 0V1000`);
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; cursor.setAttribute("d", ""); });
  }
})();
