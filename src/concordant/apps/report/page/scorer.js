// The scorer: its coefficients or importances, and how well it does.

function drawScorer() {
  const body = bodyOf("scorer");
  const found = report.scorer;
  if (!found) {
    absent("scorer", "No scorer of features is part of this report.");
    return;
  }
  body.append(...explained(found.explained));
  if (found.metrics && found.metrics.length) body.append(metricsGrid(found.metrics).node);
  if (found.features.length) featuresFigure(body, found);
  if (found.left_out) body.append(...paragraphs([`${plural(found.left_out, "feature")} not on this page.`], "note"));
}

function featuresFigure(body, { features, what, kind }) {
  const word = what === "importance" ? "Importance" : "Coefficient";
  const digits = digitsFor(features.map((one) => one.value));
  const shown = features.slice(0, CHARTED);
  const rows = shown.map((one) => ({
    name: one.feature,
    x: one.value,
    kind: one.value < 0 ? "warn" : "accent",
    text: what === "importance" ? fixed(one.value, digits) : signed(one.value, digits),
    said: [[word, signed(one.value, digits)], ...(known(one.standard_error) ? [["Standard error", fixed(one.standard_error, digits)]] : [])],
  }));
  const figure = new Figure(body, `${word}${kind ? ` of the scorer (${kind})` : ""}`).withTable(() => featuresGrid(features, word, digits).node);
  figure.show({
    option: (colour, width) => barsOption(colour, width, rows, (x) => fixed(x, Math.min(digits, 3))),
    height: () => rows.length * ROW + 40,
    said: `${word}s of ${plural(rows.length, "feature")}; the heaviest is ${short(rows[0].name, 60)} with ${rows[0].text}. The numbers are in the table below.`,
    rows: features.length,
  });
}

function featuresGrid(features, word, digits) {
  const errors = features.some((one) => known(one.standard_error));
  return gridOf(`${word}s`, features, [
    ["feature", "Feature", "text", labelled],
    ["value", word, "number", (x) => signed(x, digits), -1],
    ...(errors ? [["standard_error", "Standard error", "number", (x) => fixed(x, digits), -1]] : []),
  ], { heading: "feature" });
}

function metricsGrid(metrics) {
  return gridOf("How well it does", metrics, [
    ["name", "Metric", "text"],
    ["value", "Value", "number", (x) => fixed(x, 4), -1],
    ...(metrics.some((one) => known(one.standard_error)) ? [["standard_error", "Standard error", "number", (x) => fixed(x, 4), -1]] : []),
    ["note", "Remark", "text", (x) => x ?? ""],
  ], { heading: "name" });
}
