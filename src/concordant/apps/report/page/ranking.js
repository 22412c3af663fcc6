// The ranking as a table: sorted by any column, searched, one component alone.

let rankingGrid = null;
let rankingFigure = null;

function drawRanking(view) {
  const body = bodyOf("ranking");
  body.replaceChildren();
  const columns = view.ranking;
  const keep = view.components > 1 ? components(view) : null;
  if (keep) body.append(...paragraphs([apart(view)], "warning"), keep);
  const notes = view.notes ?? [];
  rankingGrid = new Grid({
    caption: `Ranking: ${view.name}`,
    columns: rankingColumns(view),
    rows: columns.item.length,
    what: "an item",
    search: (row) => label(columns.item[row]),
    sticky: columns.rank_lower.some((x) => known(x) && x > 0) ? 3 : 0,
    rule: tierEnds(view),
  });
  const chart = make("div", {});
  body.append(rankingGrid.node, ...paragraphs(notes, "note"), ...coefficients(view), chart);
  rankingFigure = renewFigure(rankingFigure, chart, "Scores and possible ranks of the rows above");
  rankingGrid.tell((rows) => drawRankingChart(view, rows));
}

function withoutSaid({ rank, rank_lower: from, rank_upper: to }, row) {
  return known(from[row]) && known(rank[row]) ? `${whole(rank[row])} (${rangeSaid(from[row], to[row])})` : whole(rank[row]);
}

function apart(view) {
  return `No judgments connect ${whole(view.components)} groups of items here. Each group has its own ranks: scores of two groups cannot be compared.`;
}

function components(view) {
  const found = [...new Set(view.ranking.component)].sort((a, b) => a - b);
  const choices = [["all", "all"], ...found.map((one) => [one, one])];
  return choice("Group", choices, "all", (chosen) => {
    const keep = chosen === "all" ? null : (row) => view.ranking.component[row] === Number(chosen);
    rankingGrid.renew(view.ranking.item.length, keep);
  });
}

/** Whether a tier ends between two rows that stand below each other. */
function tierEnds({ ranking: { tier = [], component } }) {
  return (row, next) => known(tier[row]) && component[row] === component[next] && tier[next] === tier[row] + 1;
}

/** What the scores account for beside the items, and how the ranks would be without. */
function coefficients({ coefficients: rows = [], ranking, uncontrolled }) {
  if (!rows.length) return [];
  const digits = digitsFor(rows.map((row) => row.estimate));
  const shown = rows.map((row) => ({ ...row, low: row.lower, reach: [row.lower, row.upper] }));
  const grid = gridOf("What the scores account for", shown, [
    ["term", "Term", "text"],
    ["estimate", "Estimate", "number", (x) => signed(x, digits), -1],
    ["standard_error", "s.e.", "number", (x) => fixed(x, digits)],
    ["low", sureSaid(), "number", (_, { reach: [low, high] }) => `${signed(low, digits)} … ${signed(high, digits)}`],
    ["p_value", "p", "number", (x) => (known(x) && x < 0.001 ? "< 0.001" : fixed(x, 3))],
  ], { heading: "term" });
  const said = ["In log-odds for one unit more on the item’s own side. The scores above are those at equal values of both sides."];
  if (rows.some((row) => row.term.startsWith("ties"))) said.push("Ties: the larger, the more often two equally good items tie.");
  return [make("h3", {}, "What the scores account for"), ...paragraphs([said.join(" ")], "note"), grid.node, ...moved(ranking, uncontrolled)];
}

const MOVED = 5; // items that are named

/** How many items have another rank than without what the scores account for, and which moved most. */
function moved({ item, rank }, without) {
  if (!without) return [];
  const both = rank.map((now, row) => ({ row, now, then: without.rank[row] })).filter(({ now, then }) => known(now) && known(then));
  const other = both.filter(({ now, then }) => now !== then).sort((a, b) => Math.abs(b.now - b.then) - Math.abs(a.now - a.then));
  if (!other.length) return paragraphs([`Without it all ${plural(both.length, "item")} would have the same ranks.`]);
  const some = other.slice(0, MOVED).flatMap(({ row, now, then }, at) => [at ? ", " : "", make("bdi", { class: "label" }, short(label(item[row]), 40)), ` (${whole(then)} → ${whole(now)})`]);
  return [make("p", {}, `Taking it into account gives ${whole(other.length)} of ${plural(both.length, "item")} another rank. The most: `, ...some, ".")];
}

function sureSaid() {
  return known(report.settings?.level) ? `${Number((100 * report.settings.level).toFixed(2))}%` : "Interval";
}

function rankingColumns(view) {
  const held = view.ranking;
  const digits = digitsFor(held.score);
  const number = (title, key, shown, first = 1) => ({
    title,
    kind: "number",
    first,
    value: (row) => held[key][row],
    shown: (row) => shown(held[key][row]),
  });
  const bounded = held.lower.some(known);
  const ranked = held.rank_lower.some((x) => known(x) && x > 0);
  const remark = (row) => [held.provisional[row] ? "no rank" : "", held.flag[row]].filter(Boolean).join(", ");
  const elo = report.elo ? (x) => (typeof x === "number" ? report.elo.centre + report.elo.per * x : x) : null;
  const interval = (title, read) => ({
    title,
    kind: "number",
    first: -1,
    value: (row) => held.lower[row],
    shown: (row) => read(held.lower[row], held.upper[row]),
  });
  const without = view.uncontrolled;
  return [
    number("Rank", "rank", whole),
    ...(ranked
      ? [{ title: "Range", kind: "number", value: (row) => (held.rank_lower[row] ? held.rank_lower[row] + held.rank_upper[row] / 1e6 : null), shown: (row) => (held.rank_lower[row] ? rangeSaid(held.rank_lower[row], held.rank_upper[row]) : UNKNOWN) }]
      : []),
    { title: "Item", kind: "text", heading: true, value: (row) => label(held.item[row]), shown: (row) => labelled(label(held.item[row])) },
    ...((held.tier ?? []).some((x) => x > 1) ? [number("Tier", "tier", whole)] : []),
    ...(without
      ? [{ title: `Rank without ${short((report.covariates ?? []).join(", "), 40)}`, kind: "number", value: (row) => without.rank[row], shown: (row) => withoutSaid(without, row) }]
      : []),
    ...(elo ? [number("Elo scale", "score", (x) => whole(elo(x)), -1)] : []),
    ...(elo && bounded ? [interval(`Elo, ${sureSaid()}`, (low, high) => `${whole(elo(low))} … ${whole(elo(high))}`)] : []),
    ...((held.win_rate ?? []).some(known) ? [number("Win rate", "win_rate", (x) => percent(x, 1), -1)] : []),
    number("Judgments", "judgments", count, -1),
    number("Score", "score", (x) => signed(x, digits), -1),
    ...(bounded ? [interval(`Score, ${sureSaid()}`, (low, high) => `${signed(low, digits)} … ${signed(high, digits)}`)] : []),
    ...(view.components > 1 ? [number("Group", "component", whole)] : []),
    ...(held.flag.some(Boolean) || held.provisional.some(Boolean) ? [{ title: "Remark", kind: "text", value: (row) => remark(row) || null, shown: remark }] : []),
  ];
}
