// Risk against coverage, with a slider for what an open pair costs.

const COSTS = { least: 0, most: 0.5, step: 0.005, first: 0.25 };
const SAME = 1e-12; // losses that differ by less are equal, as in RiskCoverage.best

function drawCoverage() {
  const body = bodyOf("coverage");
  const curve = report.coverage;
  if (!curve) {
    absent("coverage", "No held-out pairs are part of this report.");
    return;
  }
  body.append(...explained(curve.explained));
  const steps = coverageSteps(curve);
  const figure = new Figure(document.createElement("div"), "Risk: share of the wrong among the pairs that are ordered");
  const slider = costSlider(firstCost(curve, steps), (cost, said) => {
    const chosen = bestStep(curve, cost);
    said.replaceChildren(chosenFacts(curve, steps, chosen, cost));
    coverageShow(figure, curve, steps, chosen, cost);
    const { coverage, risk } = steps[chosen];
    return risk === null ? "no pair ordered" : `${percent(coverage, 1)} of the pairs ordered, ${percent(risk, 1)} of them wrong`;
  });
  body.append(slider.node, figure.node);
  figure.withTable(() => coverageGrid(curve, steps).node);
  slider.start();
}

/** Coverage and risk of each step; the last one, where it declines all, has no risk. */
function coverageSteps({ mass, declined, wrong, threshold }) {
  return declined.map((gone, at) => {
    const kept = Math.max(0, mass - gone);
    const none = kept <= SAME * mass;
    return { threshold: threshold[at], coverage: none ? 0 : kept / mass, risk: none ? null : wrong[at] / kept };
  });
}

function lossAt({ mass, declined, wrong }, at, cost) {
  return (wrong[at] + cost * declined[at]) / mass;
}

/** The first step of least loss. */
function bestStep(curve, cost) {
  const losses = curve.declined.map((_, at) => lossAt(curve, at, cost));
  const least = losses.reduce((a, b) => Math.min(a, b), Infinity);
  return losses.findIndex((loss) => loss <= least + SAME);
}

/** Where the slider begins: the usual cost, or the least above it at which half of the pairs are ordered. */
function firstCost(curve, steps) {
  const { most, step, first } = COSTS;
  for (let cost = first; cost < most; cost += step) if (steps[bestStep(curve, cost)].coverage >= 0.5) return Number(cost.toFixed(3));
  return most;
}

function costSlider(first, act) {
  const id = "cost";
  const { least: min, most: max, step } = COSTS;
  const input = make("input", { id, type: "range", min, max, step, value: first });
  // what the slider says of itself is heard as it moves: nothing beside it is to speak as well
  const shown = make("output", { for: id, "aria-live": "off" });
  const said = make("div", { class: "chosen" });
  const change = () => {
    const cost = Number(input.value);
    shown.textContent = fixed(cost, 3);
    input.setAttribute("aria-valuetext", `${fixed(cost, 3)}: ${act(cost, said)}`);
  };
  on(input, "input", change);
  const row = make("div", { class: "slider" }, make("label", { for: id }, "Cost of a pair left open"), input, shown);
  return { node: make("div", {}, row, said), start: change };
}

function chosenFacts(curve, steps, chosen, cost) {
  const { threshold, coverage, risk } = steps[chosen];
  return facts([
    ["Pairs ordered", percent(coverage, 1)],
    ["Wrong among them", percent(risk, 2)],
    [`Threshold (${curve.by})`, chosen === 0 ? "none: every pair is ordered" : fixed(threshold, 4)],
    ["Loss per pair", fixed(lossAt(curve, chosen, cost), 4)],
    ["Loss without leaving any open", fixed(lossAt(curve, 0, cost), 4)],
  ]);
}

function coverageShow(figure, curve, steps, chosen, cost) {
  const points = steps.filter((step) => step.risk !== null).map((step) => [step.coverage, step.risk]);
  const now = steps[chosen];
  figure.show({
    option: (colour) => coverageOption(colour, points, now),
    height: (width) => Math.min(340, Math.max(230, width * 0.5)),
    said: `Risk falls or rises with coverage: ${percent(steps[0].risk, 1)} when all pairs are ordered; at a cost of ${fixed(cost, 3)}, ${percent(now.coverage, 1)} of the pairs are ordered and ${percent(now.risk, 2)} of them are wrong.`,
    rows: steps.length,
  });
}

function coverageOption(colour, points, now) {
  const axis = { type: "value", axisLabel: { color: colour.soft, formatter: (x) => percent(x, x > 0 && x < 0.02 ? 1 : 0) }, splitLine: { lineStyle: { color: colour.line } }, nameTextStyle: { color: colour.ink } };
  const mark = now.risk === null ? [] : [[now.coverage, now.risk]];
  return {
    grid: { left: 56, right: 24, top: 30, bottom: 48 },
    xAxis: { ...axis, min: 0, max: 1, name: "coverage: share of the pairs that are ordered", nameLocation: "middle", nameGap: 28 },
    yAxis: { ...axis, min: 0, name: "risk" },
    tooltip: tooltip(colour, ({ value }) => tip("", [["Coverage", percent(value[0], 1)], ["Risk", percent(value[1], 2)]])),
    series: [
      { type: "line", data: points, showSymbol: points.length < 60, symbol: "circle", symbolSize: 4, color: colour.accent, lineStyle: { width: 2 } },
      { type: "scatter", data: mark, symbol: "diamond", symbolSize: 16, itemStyle: { color: colour.warn, opacity: 1 }, z: 5 },
      { type: "line", data: now.risk === null ? [] : [[now.coverage, 0], [now.coverage, now.risk], [0, now.risk]], symbol: "none", silent: true, lineStyle: { type: "dashed", width: 1, color: colour.warn } },
    ],
  };
}

function coverageGrid(curve, steps) {
  const records = steps.map((step, at) => ({ ...step, declined: curve.declined[at] / curve.mass, wrong: curve.wrong[at] / curve.mass }));
  return gridOf("Risk and coverage", records, [
    ["threshold", "Threshold", "number", (x) => (known(x) ? fixed(x, 4) : "none")],
    ["coverage", "Coverage", "number", (x) => percent(x, 1), -1],
    ["risk", "Risk", "number", (x) => percent(x, 2)],
    ["declined", "Left open, of all", "number", (x) => percent(x, 1), -1],
    ["wrong", "Wrong, of all", "number", (x) => percent(x, 2), -1],
  ]);
}
