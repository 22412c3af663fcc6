// The page draws itself: what is in sight first.

function drawNav() {
  const links = [...document.querySelectorAll("main > section")].map((section) => {
    const title = section.querySelector("h2").textContent;
    return make("li", {}, make("a", { href: `#${section.id}` }, title));
  });
  document.getElementById("sections").append(make("ul", {}, make("li", {}, make("a", { href: "#overview" }, "In short")), ...links));
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
  if (!report.paths && !report.absent?.paths) document.getElementById("paths").remove();
  drawNav();
  drawOverview();
  drawChooser();
  if (report.views.length) {
    onView("ranking", drawRanking);
    onView("beats", drawBeats);
    onView("graph", drawGraph);
  }
  if (document.getElementById("paths")) once("paths", drawPaths);
  once("audit", drawAuditOverall);
  if (report.views.length) onView("audit", drawAudit);
  once("annotators", drawAnnotators);
  once("order", drawOrder);
  once("scorer", drawScorer);
  once("coverage", drawCoverage);
  if (report.views.length) onView("ask", drawAsk);
  drawSeen();
  drawLater();
  on(window, "beforeprint", toPaper);
  on(window, "afterprint", toScreen);
  const paper = window.matchMedia("print");
  on(paper, "change", () => (paper.matches ? toPaper() : toScreen()));
  on(window.matchMedia("(prefers-color-scheme: dark)"), "change", drawFigures);
}

start();
