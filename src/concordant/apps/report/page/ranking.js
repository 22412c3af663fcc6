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
  });
  const chart = make("div", {});
  body.append(rankingGrid.node, ...paragraphs(notes, "note"), chart);
  rankingFigure = renewFigure(rankingFigure, chart, "Scores and possible ranks of the rows above");
  rankingGrid.tell((rows) => drawRankingChart(view, rows));
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
  return [
    number("Rank", "rank", whole),
    { title: "Item", kind: "text", heading: true, value: (row) => label(held.item[row]), shown: (row) => labelled(label(held.item[row])) },
    number("Score", "score", (x) => signed(x, digits), -1),
    ...(bounded ? [number("Lower bound", "lower", (x) => signed(x, digits), -1), number("Upper bound", "upper", (x) => signed(x, digits), -1)] : []),
    ...(ranked ? [number("Best rank", "rank_lower", whole), number("Worst rank", "rank_upper", whole)] : []),
    number("Judgments", "judgments", count, -1),
    ...(view.components > 1 ? [number("Group", "component", whole)] : []),
    ...(held.flag.some(Boolean) || held.provisional.some(Boolean) ? [{ title: "Remark", kind: "text", value: (row) => remark(row) || null, shown: remark }] : []),
  ];
}
