// A chart with what belongs to it: a caption, a text alternative, and its numbers as a table.

const figures = [];
const PAPER = 660; // pixels that fit on a sheet of A4 or Letter within any margins

function onPaper() {
  return document.documentElement.classList.contains("paper");
}

class Figure {
  constructor(parent, title) {
    this.caption = make("figcaption", {}, title);
    this.box = make("div", { class: "chart", role: "img" });
    this.node = make("figure", {}, this.caption, this.box);
    parent.append(this.node);
    this.chart = null;
    this.option = null;
    this.width = 0;
    figures.push(this);
    watched.observe(this.box);
  }

  /** Add the numbers as a table that is made when it is opened; rows: how many it has. */
  withTable(draw) {
    this.table = new Folded(this.node, "Numbers as a table", draw);
    return this;
  }

  /** option: from colours and width in pixels to what ECharts draws; height: of the width, in pixels. */
  show({ option, height, said, rows = 0 }) {
    this.option = option;
    this.height = height;
    this.box.setAttribute("aria-label", said);
    if (this.table) this.table.renew(rows);
    this.draw();
  }

  draw() {
    const width = Math.min(this.box.clientWidth, onPaper() ? PAPER : Infinity);
    if (!this.option || !width) return;
    const height = Math.round(this.height(width));
    this.box.style.height = `${height}px`;
    this.chart ??= echarts.init(this.box, null, { renderer: "canvas", devicePixelRatio: density(), width, height });
    this.width = width;
    const font = { fontFamily: getComputedStyle(document.body).fontFamily, fontSize: 12 };
    const option = { animation: false, textStyle: font, ...this.option(colours(), width) };
    const resized = width !== this.chart.getWidth() || height !== this.chart.getHeight();
    this.chart.setOption(option, { notMerge: true, lazyUpdate: resized });
    if (resized) this.chart.resize({ width, height });
    if (onPaper()) this.chart.getZr().flush();
  }
}

/** A table behind a disclosure: it costs nothing until it is opened. */
class Folded {
  constructor(parent, title, draw) {
    this.title = title;
    this.draw = draw;
    this.summary = make("summary", {}, title);
    this.inside = make("div", {});
    this.node = make("details", { class: "numbers" }, this.summary, this.inside);
    this.due = true;
    on(this.node, "toggle", () => this.fill());
    parent.append(this.node);
    folded.push(this);
  }

  renew(rows) {
    this.rows = rows;
    this.due = true;
    this.summary.replaceChildren(this.title, make("span", { class: "soft" }, ` · ${plural(rows, "row")}`));
    this.fill();
  }

  fill() {
    if (!this.due || !this.node.open) return;
    this.due = false;
    this.inside.replaceChildren(this.draw());
  }
}

const folded = [];
const watched = new ResizeObserver((entries) => {
  for (const entry of entries) {
    const figure = figures.find((one) => one.box === entry.target);
    if (figure && Math.abs(entry.contentRect.width - figure.width) >= 1 && !onPaper()) figure.draw();
  }
});

/** Pixels of the canvas for one of the page: those of the screen; finer on paper. */
function density() {
  return onPaper() ? 3 : Math.min(3, Math.max(1, window.devicePixelRatio || 1));
}

function drawFigures() {
  for (const figure of figures) figure.draw();
}

/** Draw again with other pixels: to paper and back. */
function remakeFigures() {
  for (const figure of figures) {
    if (figure.chart) figure.chart.dispose();
    figure.chart = null;
    figure.draw();
  }
}

/** The figure of a section that draws itself again: the same canvas in its new place. */
function renewFigure(figure, parent, title) {
  const kept = figure ?? new Figure(parent, title);
  parent.append(kept.node);
  return kept;
}
