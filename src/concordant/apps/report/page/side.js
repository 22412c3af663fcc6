// Categories side by side: the rank of each item in every query, and the ranks that are possible there.

const SIDES = 13; // columns: all together, and a dozen queries

/** Whether there are queries whose rankings can be laid side by side: most of their items in common. */
function sideBySide() {
  const [first, ...others] = report.views;
  if (others.length < 2 - Number(Boolean(first?.pooled))) return false;
  const held = new Set(first.ranking.item);
  const large = (view) => view.ranking.item.length >= Math.max(3, first.ranking.item.length / 4);
  if (others.filter(large).length < others.length / 2) return false;
  const shared = others.slice(0, SIDES).flatMap((view) => view.ranking.item).filter((code) => held.has(code)).length;
  return first.ranking.item.length > 2 && 2 * shared >= others.slice(0, SIDES).reduce((all, view) => all + view.ranking.item.length, 0);
}

function drawSide() {
  const body = bodyOf("side");
  const views = report.views.slice(0, SIDES);
  const each = views.map(ranksIn);
  const codes = views[0].ranking.item;
  const columns = views.map((view, at) => [view.name, (row) => each[at].get(codes[row])]);
  const grid = ranksGrid("Ranks side by side", codes.map(label), columns);
  const gone = report.views.length - views.length;
  body.append(grid.node, ...(gone > 0 ? paragraphs([`The ${SIDES} with most judgments; ${whole(gone)} more above, one at a time.`], "note") : []));
}

/** A table of ranks with their ranges: items below each other; columns are [title, row → cell or null]. */
function ranksGrid(caption, items, columns) {
  const cells = columns.map(([, of]) => items.map((_, row) => of(row) ?? null));
  const size = Math.max(2, ...cells.flat().map((one) => Math.max(one?.rank ?? 0, one?.to ?? 0)));
  const shown = columns.map(([title], at) => ({
    title: short(title, 24),
    kind: "number",
    first: 1,
    value: (row) => cells[at][row]?.rank ?? null,
    shown: (row) => sideCell(cells[at][row], size),
  }));
  const named_ = { title: "Item", kind: "text", heading: true, value: (row) => items[row], shown: (row) => labelled(items[row]) };
  return new Grid({ caption, columns: [named_, ...shown], rows: items.length, sticky: 1 });
}

/** Rank and range of each item of a view's largest group. */
function ranksIn({ ranking }) {
  const found = new Map();
  ranking.item.forEach((code, row) => {
    if (ranking.component[row] === 1 && known(ranking.rank[row])) {
      found.set(code, { rank: ranking.rank[row], from: ranking.rank_lower[row], to: ranking.rank_upper[row], judgments: ranking.judgments[row] });
    }
  });
  return found;
}

function sideCell(one, size) {
  if (!one) return UNKNOWN;
  const ranged = known(one.from) && one.from > 0;
  const at = (rank) => `${size > 1 ? (100 * (rank - 1)) / (size - 1) : 0}%`;
  const strip = make("span", { class: "strip", "aria-hidden": "true" });
  strip.style.setProperty("--from", at(ranged ? one.from : one.rank));
  strip.style.setProperty("--to", at(ranged ? one.to : one.rank));
  strip.style.setProperty("--at", at(one.rank));
  const range = ranged ? make("small", {}, ` ${rangeSaid(one.from, one.to)}`) : null;
  return make("span", { class: "side", title: known(one.judgments) ? plural(one.judgments, "judgment") : null }, whole(one.rank), range, strip);
}

/** A range of ranks: "3–7", or "3" where no other is possible. */
function rangeSaid(from, to) {
  return from === to ? whole(from) : `${whole(from)}–${whole(to)}`;
}
