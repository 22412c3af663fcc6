// The audit: what each loss would make of judgments like these, over all queries and in the one chosen.

let regretFigure = null;

/** Over all queries; drawn once. */
function drawAuditOverall() {
  const place = bodyOf("audit");
  if (!report.audit) {
    absent("audit", "There is no audit here.");
    return;
  }
  const { surrogates, held_out: held } = report.audit;
  const said = (report.audit.lines ?? []).filter((line) => line !== report.facts);
  if (said.length) place.append(list(said, "found"));
  const single = report.views.length === 1 && report.views[0].audit;
  if (surrogates && surrogates.length && !single) place.append(make("h3", {}, "Losses over all queries"), overallGrid(surrogates).node);
  if (held && held.length) place.append(...heldOut(held));
  place.append(make("div", { id: "audit-view" }));
}

function overallGrid(rows) {
  return gridOf("Losses: would their order be a best one?", rows, [
    ["surrogate", "Loss", "text"],
    ["target", "Judged by", "text"],
    ["right", "Queries right", "number", whole, -1],
    ["wrong", "wrong", "number", whole, -1],
    ["undecided", "not decided", "number", whole, -1],
    ["mean_regret", "Mean excess", "number", (x) => fixed(x, 4)],
  ], { heading: "surrogate" });
}

function heldOut(rows) {
  const said = "Fitted to half of the judgments and tried on the rest, against the best order of that half. Above 0: worse than that order.";
  const grid = gridOf("Losses on judgments not seen", rows, [
    ["surrogate", "Loss", "text"],
    ["mean", "Mean excess", "number", (x) => signed(x, 4)],
    ["standard_error", "Standard error", "number", (x) => fixed(x, 4)],
    ["queries", "Queries", "number", whole, -1],
  ], { heading: "surrogate" });
  return [make("h3", {}, "On judgments not seen"), ...paragraphs([said]), grid.node];
}

function drawAudit(view) {
  const place = document.getElementById("audit-view");
  if (!place) return;
  place.replaceChildren(make("h3", {}, make("bdi", {}, auditTitle(view))));
  const audit = view.audit;
  if (!audit) {
    place.append(...paragraphs([report.absent?.view_audit ?? "This view was not audited by itself."], "absent"));
    return;
  }
  const said = (audit.lines ?? []).filter((line) => !report.audit.lines.includes(line));
  if (said.length) place.append(list(said));
  place.append(...auditFacts(audit.row));
  if (audit.surrogates && audit.surrogates.length) drawVerdicts(place, audit.surrogates);
}

function auditTitle(view) {
  if (report.views.length === 1) return "In detail";
  return view.pooled ? view.name : `Query ${short(view.name, 80)}`;
}

const AUDIT_FACTS = [
  ["acyclic", "Net preferences without cycles", yesNo],
  ["low_noise", "Low-noise condition", yesNo],
  ["row_sum_condition", "Sorting by net preference is best", yesNo],
  ["cycles_are", "Cycles are", String],
  ["condorcet_winner", "Preferred to every other", String],
  ["largest_component", "Items in the largest knot of cycles", whole],
  ["optimal_loss", "Loss of the best order, per judgment", (x) => fixed(x, 4)],
  ["optimal_exact", "Best order proven", yesNo],
];

function yesNo(x) {
  return x === true || x === "true" ? "yes" : x === false || x === "false" ? "no" : String(x);
}

function auditFacts(row) {
  const pairs = AUDIT_FACTS.filter(([key]) => row && known(row[key])).map(([key, term, shown]) => [term, shown(row[key])]);
  return pairs.length ? [facts(pairs)] : [];
}

function drawVerdicts(place, rows) {
  const chart = make("div", {});
  place.append(chart);
  regretFigure = renewFigure(regretFigure, chart, "Excess loss of each loss’s order, per judgment");
  const drawTable = () => verdictGrid(rows).node;
  if (regretFigure.table) regretFigure.table.draw = drawTable;
  else regretFigure.withTable(drawTable);
  regretFigure.show({
    option: (colour, width) => barsOption(colour, width, rows.map(verdictBar), (x) => fixed(x, 3)),
    height: () => rows.length * 26 + 40,
    said: `Excess loss of ${rows.map((row) => `${row.surrogate} ${fixed(row.regret, 4)} (${verdict(row.consistent)})`).join(", ")}.`,
    rows: rows.length,
  });
}

function verdict(consistent) {
  return consistent === true ? "right" : consistent === false ? "wrong" : "not decided";
}

function verdictBar(row) {
  const said = verdict(row.consistent);
  const at = fixed(row.regret, 4);
  const kind = { right: "accent", wrong: "warn", "not decided": "soft" }[said];
  const pairs = [["Verdict", said], ["Excess", at], ["At most", fixed(row.regret_at_most, 4)], ["Judged by", row.target ?? UNKNOWN]];
  return { name: row.surrogate, x: row.regret, kind, text: `${at}  ${said}`, said: pairs };
}

function verdictGrid(rows) {
  const records = rows.map((row) => ({ ...row, verdict: verdict(row.consistent) }));
  return gridOf("Verdicts on losses", records, [
    ["surrogate", "Loss", "text"],
    ["verdict", "Its order is", "text"],
    ["regret", "Excess", "number", (x) => fixed(x, 4)],
    ["regret_at_most", "At most", "number", (x) => fixed(x, 4)],
    ["target", "Judged by", "text"],
    ["status", "Minimum", "text"],
  ], { heading: "surrogate" });
}
