// The page draws itself: what is in sight first.

function drawNav() {
  const links = [...document.querySelectorAll("main > section")].map((section) => {
    const title = section.querySelector("h2").textContent;
    return make("li", {}, make("a", { href: `#${section.id}` }, title));
  });
  document.getElementById("sections").append(make("ul", {}, make("li", {}, make("a", { href: "#overview" }, "In short")), ...links));
}

/** Sections that have nothing to show go; at the end it is said what would fill them. */
function dropEmpty() {
  const some = (has) => report.views.some(has);
  const there = {
    ranking: report.views.length > 0,
    side: sideBySide(),
    paths: Boolean(report.paths),
    beats: some((view) => view.beats?.pairs.length),
    graph: some((view) => view.graph?.edges.length),
    audit: Boolean(report.audit),
    annotators: Boolean(report.annotators),
    models: Boolean(report.models?.length),
    order: Boolean(report.order),
    scorer: Boolean(report.scorer),
    axioms: Boolean(report.axioms),
    coverage: Boolean(report.coverage),
    ask: some((view) => view.ask?.length),
  };
  const said = [];
  for (const section of Object.keys(there).filter((name) => !there[name])) {
    const node = document.getElementById(section);
    const why = report.absent?.[section];
    if (why) said.push(`${node.querySelector("h2").textContent}: ${why}`);
    node.remove();
  }
  if (said.length) document.querySelector("footer").prepend(make("details", { class: "notes", id: "absent" }, make("summary", {}, `What else this page can show (${said.length})`), list(said)));
  return Object.keys(there).filter((name) => there[name]);
}

function once(section, draw) {
  let done = false;
  onView(section, () => {
    if (!done) draw();
    done = true;
  });
}

const OPENED_FOR_PRINT = 30; // rows of a folded table that paper has room for

/** On paper: light colours, everything drawn, short tables open. */
function toPaper() {
  if (onPaper()) return;
  document.documentElement.classList.add("paper");
  drawAll();
  for (const fold of folded) {
    fold.opened = !fold.node.open && fold.rows > 0 && fold.rows <= OPENED_FOR_PRINT;
    if (fold.opened) fold.node.open = true;
    fold.fill();
  }
  remakeFigures();
}

function toScreen() {
  if (!onPaper()) return;
  document.documentElement.classList.remove("paper");
  for (const fold of folded) if (fold.opened) fold.node.open = false;
  remakeFigures();
}

function start() {
  const there = new Set(dropEmpty());
  drawNav();
  drawOverview();
  drawChooser();
  const byView = { ranking: drawRanking, beats: drawBeats, graph: drawGraph, ask: drawAsk };
  const whole_ = { side: drawSide, paths: drawPaths, audit: drawAuditOverall, annotators: drawAnnotators, models: drawModels, order: drawOrder, scorer: drawScorer, axioms: drawAxioms, coverage: drawCoverage };
  for (const section of there) {
    if (whole_[section]) once(section, whole_[section]);
    if (byView[section]) onView(section, byView[section]);
  }
  if (there.has("audit") && report.views.length) onView("audit", drawAudit);
  drawSeen();
  drawLater();
  on(window, "beforeprint", toPaper);
  on(window, "afterprint", toScreen);
  const paper = window.matchMedia("print");
  on(paper, "change", () => (paper.matches ? toPaper() : toScreen()));
  on(window.matchMedia("(prefers-color-scheme: dark)"), "change", drawFigures);
}

start();
