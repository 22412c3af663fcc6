// What the page shows: the data, the chosen view, and who is told when it changes.

const report = JSON.parse(document.getElementById("data").textContent);
const state = { view: 0 };
const drawn = [];

/** Tell the page how a section draws itself for a view; sections in sight come first, the others when there is time. */
function onView(section, draw) {
  drawn.push({ node: document.getElementById(section), draw, due: true });
}

function currentView() {
  return report.views[state.view];
}

function label(code) {
  return report.items[code];
}

function chooseView(index) {
  state.view = index;
  for (const part of drawn) part.due = true;
  drawSeen();
  drawLater();
}

function drawPart(part) {
  part.due = false;
  part.draw(currentView());
}

function drawSeen() {
  const height = window.innerHeight;
  for (const part of drawn) {
    const box = part.node.getBoundingClientRect();
    if (part.due && box.top < height && box.bottom > 0) drawPart(part);
  }
}

function drawLater() {
  const next = drawn.find((part) => part.due);
  document.body.setAttribute("aria-busy", String(Boolean(next)));
  if (!next) return;
  whenIdle(() => {
    if (next.due) drawPart(next);
    drawLater();
  });
}

function drawAll() {
  for (const part of drawn) if (part.due) drawPart(part);
}

function whenIdle(act) {
  if (window.requestIdleCallback) window.requestIdleCallback(act, { timeout: 1000 });
  else window.setTimeout(act, 20);
}
