// Agreement of each group of annotators with all others, and of each two groups.

function drawAnnotators() {
  const body = bodyOf("annotators");
  const found = report.annotators;
  if (!found) {
    absent("annotators", "The log does not say who judged.");
    return;
  }
  body.append(...explained(found.explained));
  if (found.groups.length) groupsFigure(body, found);
  if (found.between && found.between.groups.length > 1) betweenFigure(body, found.between);
  if (found.ranks) groupRanks(body, found);
  if (found.left_out) body.append(...paragraphs([`${plural(found.left_out, "group")} not on this page.`], "note"));
}

/** The rank of each item by each group's own judgments, beside that by all. */
function groupRanks(body, { column, ranks: { groups, items, ranks } }) {
  const all = new Map([...ranksIn(report.views[0])].map(([code, cell]) => [label(code), cell]));
  const cell = (one) => (one ? { rank: one[0], from: one[1], to: one[2], judgments: one[3] } : null);
  const columns = [["All", (row) => all.get(items[row])], ...groups.map((name, at) => [name, (row) => cell(ranks[at][row])])];
  const order = items.map((_, row) => row).sort((a, b) => (all.get(items[a])?.rank ?? Infinity) - (all.get(items[b])?.rank ?? Infinity));
  body.append(
    make("h3", {}, make("bdi", {}, `Ranks by each ${column ?? "group"}`)),
    ...paragraphs(["By its own judgments alone, small beside it the ranks that are possible. Where two bands do not overlap, the groups differ about the item."], "note"),
    ranksGrid(`Ranks by each ${column ?? "group"}`, order.map((row) => items[row]), columns.map(([title, of]) => [title, (row) => of(order[row])])).node,
  );
}

const GROUPS_DRAWN = 20;

function groupsFigure(body, found) {
  const { groups } = found;
  const shown = groups.slice(0, GROUPS_DRAWN);
  const rows = shown.map((one) => ({
    name: one.group,
    one,
    said: [["Agreement", `${percent(one.agreement, 1)} (${percent(one.lower, 1)} … ${percent(one.upper, 1)})`], ["Judgments", count(one.judgments)], ["Pairs", whole(one.pairs)]],
  }));
  const panels = [{ title: "Agreement", of: ({ one }) => ({ x: one.agreement, low: one.lower, high: one.upper }), format: (x) => percent(x) }];
  const figure = new Figure(body, groupsTitle(found)).withTable(() => groupsGrid(groups).node);
  figure.show({
    option: (colour, width) => intervalsOption(colour, width, rows, panels),
    height: intervalsHeight(rows.length, 1),
    said: `Agreement of ${plural(groups.length, "group")} with all others, with intervals. The numbers are in the table below.`,
    rows: groups.length,
  });
}

function groupsTitle({ groups, column, left_out: gone }) {
  const title = `Agreement of each ${column ?? "group"} with all others`;
  return groups.length > GROUPS_DRAWN ? `${title}: the ${GROUPS_DRAWN} of ${whole(groups.length + (gone ?? 0))} with most judgments` : title;
}

function groupsGrid(groups) {
  return gridOf("Agreement of each group with all others", groups, [
    ["group", "Group", "text", labelled],
    ["agreement", "Agreement", "number", (x) => percent(x, 1), -1],
    ["lower", "Lower bound", "number", (x) => percent(x, 1), -1],
    ["upper", "Upper bound", "number", (x) => percent(x, 1), -1],
    ["judgments", "Judgments", "number", count, -1],
    ["pairs", "Pairs", "number", whole, -1],
    ["even", "Even, left out", "number", whole, -1],
    ["ties", "Ties", "number", (x) => percent(x, 1), -1],
  ], { heading: "group" });
}

function betweenFigure(body, between) {
  const cells = betweenCells(between);
  const names = between.groups;
  const figure = new Figure(body, "Agreement of each two groups, in %").withTable(() => betweenGrid(cells).node);
  figure.show({
    option: (colour, width) => betweenOption(colour, width, names, cells),
    height: (width) => matrixSize(width, names.length, 56).height,
    said: `Agreement between ${names.length} groups: ${plural(cells.length, "pair")} of groups. The numbers are in the table below.`,
    rows: cells.length,
  });
}

function betweenCells({ groups, agreement, pairs, tau }) {
  const cells = [];
  groups.forEach((one, row) => {
    groups.forEach((other, column) => {
      const share = agreement[row][column];
      if (row !== column && known(share)) cells.push({ row, column, one, other, share, pairs: pairs?.[row]?.[column] ?? null, tau: tau?.[row]?.[column] ?? null });
    });
  });
  return cells;
}

function betweenOption(colour, width, names, cells) {
  const name = (at) => short(names[at], 40);
  return matrixOption(colour, matrixSize(width, names.length, 56), names.length, { cells, name, number: (at) => at + 1, say: betweenTip });
}

function betweenTip(cell) {
  const title = `${short(cell.one, 40)} and ${short(cell.other, 40)}`;
  return tip(title, [["Agreement", percent(cell.share, 1)], ["Pairs", whole(cell.pairs)], ["Rank correlation τ", fixed(cell.tau, 2)]]);
}

function betweenGrid(cells) {
  return gridOf("Agreement between groups", cells, [
    ["one", "Group", "text", labelled],
    ["other", "and", "text", labelled],
    ["share", "Agreement", "number", (x) => percent(x, 1), -1],
    ["pairs", "Pairs", "number", whole, -1],
    ["tau", "Rank correlation τ", "number", (x) => fixed(x, 2), -1],
  ]);
}
