"use strict";
/* The script of the report. It has no eval and makes no request: all it knows is in the element #data. */
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const views = {};
  const byId = (id) => document.getElementById(id);

  /* Numbers as `plain` and `percent` of _words.py write them. */
  const plain = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 3 });
  const percent = (rate) => plain(100 * rate) + "\u00a0%";
  const whole = (value) => Math.round(value).toLocaleString("en-US");
  const scaleOf = (rate, atLeast) => {
    let scale = atLeast;
    while (rate * scale < 1 && scale < 1e9) scale *= 10;
    return scale;
  };

  function setSignals(name, signals) {
    const view = views[name];
    if (!view) return;
    for (const [signal, value] of Object.entries(signals)) view.signal(signal, value);
    view.runAsync();
  }

  function drawCharts() {
    const options = { mode: "vega-lite", ast: true, renderer: "svg", actions: false, tooltip: false, config: data.config };
    const drawn = Object.entries(data.charts).map(([name, specification]) =>
      window.vegaEmbed(byId("chart-" + name), specification, options).then((result) => {
        views[name] = result.view;
        // The place of the chart has the text alternative; the roles that Vega gives to its marks would have none.
        for (const part of byId("chart-" + name).children) part.setAttribute("aria-hidden", "true");
      })
    );
    return Promise.all(drawn);
  }

  /* ---- The threshold ---- */

  const grid = data.grid;
  const n = grid.threshold.length;
  const slider = byId("slider");
  // The strictest threshold is the first of the grid, and at the right of the slider.
  const chosen = () => n - 1 - Number(slider.value);

  function number(id, low, high) {
    const field = byId(id);
    const value = Number(field.value);
    const valid = field.value.trim() !== "" && Number.isFinite(value) && value >= low && value <= high;
    field.setAttribute("aria-invalid", String(!valid));
    return valid ? value : NaN;
  }

  function costAt(k, ends) {
    const share = number("impostors", 0, 100) / 100;
    const perDay = number("traffic", 0, 1e15);
    const accepted = number("price-accept", 0, 1e15);
    const rejected = number("price-reject", 0, 1e15);
    const [fpr, tpr] = ends === "low" ? [grid.fprLow[k], grid.tprHigh[k]] : ends === "high" ? [grid.fprHigh[k], grid.tprLow[k]] : [grid.fpr[k], grid.tpr[k]];
    return perDay * (share * fpr * accepted + (1 - share) * (1 - tpr) * rejected);
  }

  const text = (id, words) => {
    byId(id).textContent = words;
  };
  const between = (low, high) => (Number.isFinite(low) && Number.isFinite(high) ? plain(low) + " to " + plain(high) : "");
  const shown = (value) => (Number.isFinite(value) ? plain(value) : "give numbers");

  function showThreshold() {
    const k = chosen();
    const [fpr, tpr] = [grid.fpr[k], grid.tpr[k]];
    text("at-threshold", grid.threshold[k].toPrecision(5));
    text("at-mark", k === data.used ? data.usedName : "not guaranteed");
    text("at-fpr", percent(fpr));
    text("at-fpr-bounds", percent(grid.fprLow[k]) + " to " + percent(grid.fprHigh[k]));
    text("at-tpr", percent(tpr));
    text("at-tpr-bounds", percent(grid.tprLow[k]) + " to " + percent(grid.tprHigh[k]));
    const size = number("gallery", 1, 1e15);
    text("at-matches", shown(size * fpr));
    text("at-matches-bounds", between(size * grid.fprLow[k], size * grid.fprHigh[k]));
    text("at-cost", shown(costAt(k)));
    text("at-cost-bounds", between(costAt(k, "low"), costAt(k, "high")));
    const strangers = scaleOf(fpr > 0 ? fpr : grid.fprHigh[k], 1000);
    const accepted = fpr > 0 ? "about " + whole(fpr * strangers) : "none in these data";
    const people = scaleOf(tpr < 1 ? 1 - tpr : 1 - grid.tprLow[k], 100);
    const rejected = tpr < 1 ? "about " + whole((1 - tpr) * people) : "none in these data";
    text(
      "at-words",
      "Of " + whole(strangers) + " attempts by a stranger, " + accepted + " are accepted: at most " +
        whole(Math.ceil(grid.fprHigh[k] * strangers - 1e-9)) + ". Of " + whole(people) + " attempts by the right person, " + rejected +
        " are rejected: at most " + whole(Math.ceil((1 - grid.tprLow[k]) * people - 1e-9)) + "."
    );
    const rate = Number((fpr > 0 ? fpr : grid.fprHigh[k]).toPrecision(2));
    text("command-calibrate", data.commands.calibrate + " --max-fpr " + rate);
    text("command-set", data.commands.set + " " + grid.threshold[k]);
    slider.setAttribute(
      "aria-valuetext",
      "threshold " + grid.threshold[k].toPrecision(5) + ", false positive rate " + percent(fpr) + ", true positive rate " + percent(tpr)
    );
    setSignals("roc", { chosen: k });
    setSignals("det", { chosen: k });
    setSignals("scores", { threshold: grid.threshold[k] });
  }

  function choose(k) {
    slider.value = String(n - 1 - k);
    showThreshold();
  }

  function cheapest() {
    let best = chosen();
    for (let k = 0; k < n; k++) if (costAt(k) < costAt(best)) best = k;
    choose(best);
  }

  function copy(button) {
    const source = byId(button.dataset.copy);
    const done = (ok) => text("copied", ok ? "Copied: " + source.textContent : "Not copied: select the command and copy it.");
    const bySelection = () => {
      const selection = window.getSelection();
      selection.selectAllChildren(source);
      done(document.execCommand("copy"));
    };
    if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(source.textContent).then(() => done(true), bySelection);
    else bySelection();
  }

  /* ---- The tree ---- */

  const WIDTH = 118;
  const HEIGHT = 104;
  /* Width that a sheet of A4 or letter paper has for the tree. */
  const PAPER = 660;
  const SVG = "http://www.w3.org/2000/svg";

  function exploreTree(tree) {
    const place = byId("tree");
    const cells = tree.cells;
    const isOpen = cells.map((cell) => Boolean(cell.children && cell.children.length === 2) && cell.depth < 2);
    const buttons = new Map();
    let selected = 0;

    const name = (k) => (k === 0 ? "all pairs" : cells[k].depth + "." + cells[k].rank);
    const isSplit = (k) => Boolean(cells[k].children && cells[k].children.length === 2);
    const side = (k) => (k === 0 ? "" : cells[cells[k].parent].children[0] === k ? "inside" : "outside");

    function layOut() {
      const at = new Map();
      let next = 0;
      (function visit(k) {
        if (isOpen[k]) {
          cells[k].children.forEach(visit);
          at.set(k, (at.get(cells[k].children[0]) + at.get(cells[k].children[1])) / 2);
        } else at.set(k, next++);
      })(0);
      return { at, columns: next };
    }

    function element(tag, className, words) {
      const made = document.createElement(tag);
      if (className) made.className = className;
      if (words !== undefined) made.textContent = words;
      return made;
    }

    function makeButton(k) {
      const cell = cells[k];
      const button = element("button", "cell");
      button.type = "button";
      button.setAttribute("role", "treeitem");
      button.setAttribute("aria-level", String(cell.depth + 1));
      button.dataset.cell = String(k);
      button.append(element("span", "cell-name", k === 0 ? name(k) : side(k) + " " + name(k)));
      button.append(element("span", "cell-count", cell.same.toLocaleString("en-US") + " same"));
      button.append(element("span", "cell-count", cell.different.toLocaleString("en-US") + " different"));
      const mass = [cell.tpr[1] - cell.tpr[0], cell.fpr[1] - cell.fpr[0]];
      const mix = element("span", "mix");
      const same = element("span", "mix-same");
      same.style.width = (100 * mass[0]) / (mass[0] + mass[1] || 1) + "%";
      mix.append(same);
      button.append(mix);
      button.addEventListener("click", () => {
        if (selected === k && isSplit(k)) isOpen[k] = !isOpen[k];
        else if (isSplit(k)) isOpen[k] = true;
        select(k);
      });
      return button;
    }

    function draw() {
      const { at, columns } = layOut();
      const depth = Math.max(...[...at.keys()].map((k) => cells[k].depth));
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("width", columns * WIDTH);
      svg.setAttribute("height", (depth + 1) * HEIGHT);
      svg.setAttribute("aria-hidden", "true");
      for (const k of at.keys()) {
        if (!isOpen[k]) continue;
        for (const child of cells[k].children) {
          const line = document.createElementNS(SVG, "path");
          const [x, x2, y] = [(at.get(k) + 0.5) * WIDTH, (at.get(child) + 0.5) * WIDTH, (cells[k].depth + 0.78) * HEIGHT];
          line.setAttribute("d", "M" + x + " " + (y - 12) + "V" + y + "H" + x2 + "V" + (cells[child].depth + 0.05) * HEIGHT);
          svg.append(line);
        }
      }
      place.replaceChildren(svg);
      place.style.height = (depth + 1) * HEIGHT + "px";
      place.style.width = columns * WIDTH + "px";
      place.style.setProperty("--paper-scale", Math.min(1, PAPER / (columns * WIDTH)));
      buttons.clear();
      // In the order of a walk through the tree, which is also that of arrow keys.
      (function visit(k) {
        const button = makeButton(k);
        button.style.left = at.get(k) * WIDTH + "px";
        button.style.top = cells[k].depth * HEIGHT + "px";
        button.tabIndex = k === selected ? 0 : -1;
        button.setAttribute("aria-selected", String(k === selected));
        if (isSplit(k)) button.setAttribute("aria-expanded", String(isOpen[k]));
        place.append(button);
        buttons.set(k, button);
        if (isOpen[k]) cells[k].children.forEach(visit);
      })(0);
    }

    function conditions(rules, all) {
      if (rules.length === 1) return element("span", "", rules[0]);
      const part = element("span", "", all);
      const list = element("ul");
      rules.forEach((rule) => list.append(element("li", "", rule)));
      part.append(list);
      return part;
    }

    function describe(k) {
      const cell = cells[k];
      const [share, others] = [cell.tpr[1] - cell.tpr[0], cell.fpr[1] - cell.fpr[0]];
      const panel = byId("cell");
      panel.replaceChildren(element("h3", "", k === 0 ? "All pairs" : "Cell " + name(k)));
      const path = [];
      for (let below = k; cells[below].parent >= 0; below = cells[below].parent) path.unshift(below);
      if (path.length) {
        panel.append(element("p", "", "A pair is in this cell if all of these hold:"));
        const list = element("ol", "rule");
        for (const below of path) {
          const above = cells[cells[below].parent];
          const item = element("li");
          if (side(below) === "inside") item.append(conditions(above.rule, "one of these:"));
          else item.append(above.opposite ? element("span", "", above.opposite) : conditions(above.rule.length === 1 ? ["not: " + above.rule[0]] : above.rule, "none of these:"));
          list.append(item);
        }
        panel.append(list);
      }
      const likely = others > 0 ? (share > 0 ? plain(share / others) + " times as likely as" : "never seen here, unlike") : "seen here, and never";
      panel.append(
        element(
          "p", "cell-counts",
          cell.same.toLocaleString("en-US") + " same pairs (" + percent(share) + " of all) and " + cell.different.toLocaleString("en-US") +
            " different pairs (" + percent(others) + ") of the training data" +
            (k === 0 ? "." : "; relative to all, a same pair is " + likely + " a different one.")
        )
      );
      panel.append(
        element(
          "p", "cell-segment",
          "On the training curve it is the segment from FPR " + percent(cell.fpr[0]) + " to " + percent(cell.fpr[1]) + " and TPR " +
            percent(cell.tpr[0]) + " to " + percent(cell.tpr[1]) + "."
        )
      );
      if (cell.score !== undefined) panel.append(element("p", "", "It is not split: its score is " + Number(cell.score.toPrecision(6)) + "."));
      else if (isSplit(k)) {
        panel.append(element("p", "", "It is split. Pairs are more similar (inside) if"));
        const list = element("ul", "rule split");
        list.append(element("li"));
        list.firstChild.append(conditions(cell.rule, "one of these holds:"));
        panel.append(list);
      } else panel.append(element("p", "faint", "It is split further; the report has the " + cells.length + " cells nearest to the root only."));
      setSignals("segment", { first: cell.knots[0], last: cell.knots[1] });
    }

    function select(k, focus = true) {
      selected = k;
      draw();
      describe(k);
      if (focus) {
        buttons.get(k).focus({ preventScroll: true });
        buttons.get(k).scrollIntoView({ block: "nearest", inline: "nearest" });
      }
    }

    place.addEventListener("keydown", (event) => {
      const order = [...buttons.keys()];
      const here = order.indexOf(selected);
      const cell = cells[selected];
      let to = null;
      if (event.key === "ArrowDown") to = order[here + 1];
      else if (event.key === "ArrowUp") to = order[here - 1];
      else if (event.key === "Home") to = order[0];
      else if (event.key === "End") to = order[order.length - 1];
      else if (event.key === "ArrowRight" && isSplit(selected)) {
        to = isOpen[selected] ? cell.children[0] : selected;
        isOpen[selected] = true;
      } else if (event.key === "ArrowLeft") {
        to = isOpen[selected] ? selected : cell.parent;
        isOpen[selected] = false;
      } else return;
      event.preventDefault();
      if (to !== null && to !== undefined && to >= 0) select(to);
    });

    byId("open-all").addEventListener("click", () => {
      cells.forEach((_, k) => (isOpen[k] = isSplit(k)));
      select(selected, false);
    });
    byId("close-all").addEventListener("click", () => {
      isOpen.fill(false);
      select(0, false);
    });
    select(0, false);
  }

  /* ---- Start ---- */

  slider.addEventListener("input", showThreshold);
  for (const id of ["gallery", "traffic", "impostors", "price-accept", "price-reject"]) byId(id).addEventListener("input", showThreshold);
  byId("to-cheapest").addEventListener("click", cheapest);
  if (byId("to-used")) byId("to-used").addEventListener("click", () => choose(data.used));
  for (const button of document.querySelectorAll("button[data-copy]")) button.addEventListener("click", () => copy(button));
  if (data.tree) exploreTree(data.tree);
  drawCharts().then(() => {
    showThreshold();
    document.documentElement.dataset.ready = "true";
  });
  showThreshold();
})();
