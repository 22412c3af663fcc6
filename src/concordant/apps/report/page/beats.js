// Who beats whom: a heat map of win shares between some items, in the order of the ranking.

let beatsFigure = null;

function drawBeats(view) {
  const body = bodyOf("beats");
  body.replaceChildren();
  const beats = view.beats;
  if (!beats || !beats.pairs.length) {
    body.append(...paragraphs([report.absent?.beats ?? "No pair of these items was compared."], "absent"));
    return;
  }
  const order = view.ranking.item;
  const picking = new Picking(order, beats.pairs.map(([one, other]) => [one, other]), Math.min(window.innerWidth < 640 ? 10 : 20, order.length));
  const pairs = new Pairs(beats.pairs);
  const chart = make("div", {});
  const redraw = () => showBeats(picking, pairs);
  const tools = make("div", { class: "tools" }, ...picking.controls(sizesUpTo(order.length, 40), redraw));
  body.append(tools, scaleKey("the column always won", "the row always won"), ...paragraphs([`Paler: fewer than ${ENOUGH} judgments. Hatched: fewer than ${FEW}, next to nothing.`], "key"), chart, ...beatsNotes(beats));
  const drawTable = () => beatsTable(picking, pairs).node;
  beatsFigure = renewFigure(beatsFigure, chart, "Share of judgments that the row won");
  if (beatsFigure.table) beatsFigure.table.draw = drawTable;
  else beatsFigure.withTable(drawTable);
  redraw();
}

/** Wins of pairs, by the codes of the items, in either direction. */
class Pairs {
  constructor(rows) {
    this.rows = rows;
    this.at = new Map();
    rows.forEach(([one, other], at) => this.at.set(`${one} ${other}`, at));
  }

  /** Of a pair: wins, losses, ties and the share won, a tie half; null if never compared. */
  of(one, other) {
    const there = this.at.get(`${one} ${other}`);
    const back = there === undefined ? this.at.get(`${other} ${one}`) : undefined;
    if (there === undefined && back === undefined) return null;
    const [, , first, second, ties] = this.rows[there ?? back];
    const [wins, losses] = there !== undefined ? [first, second] : [second, first];
    const all = wins + losses + ties;
    return all > 0 ? { wins, losses, ties, all, share: (wins + ties / 2) / all } : null;
  }
}

function beatsNotes({ left_out: gone }) {
  return gone ? paragraphs([`${plural(gone, "pair")} with judgments not on this page.`], "note") : [];
}

function showBeats(picking, pairs) {
  const places = picking.places;
  const items = places.map((place) => picking.order[place]);
  const cells = beatsCells(items, pairs);
  const none = cells.length ? "" : " No two of these items were compared with each other.";
  beatsFigure.caption.textContent = `Share of judgments that the row won, in %: ${items.length} of ${plural(picking.order.length, "item")}, ${picking.said}.${none}`;
  beatsFigure.show({
    option: (colour, width) => beatsOption(colour, width, places, items, cells),
    height: (width) => matrixSize(width, items.length, 40).height,
    said: `Heat map: ${items.length} items against each other, ${plural(cells.length / 2, "compared pair")}. The numbers are in the table below.`,
    rows: cells.length,
  });
}

/** The cells that have judgments, with their numbers. */
function beatsCells(items, pairs) {
  const cells = [];
  items.forEach((one, row) => {
    items.forEach((other, column) => {
      const found = row === column ? null : pairs.of(one, other);
      if (found) cells.push({ row, column, ...found });
    });
  });
  return cells;
}

function beatsOption(colour, width, places, items, cells) {
  const name = (at) => short(label(items[at]), 40);
  const say = (cell) => beatsTip(items, cell);
  return matrixOption(colour, matrixSize(width, items.length, 40), items.length, { cells, name, number: (at) => places[at] + 1, say });
}

function beatsTip(items, cell) {
  const title = `${short(label(items[cell.row]), 40)} against ${short(label(items[cell.column]), 40)}`;
  return tip(title, [
    ["Won", `${percent(cell.share, 1)} of ${count(cell.all)}`],
    ["Wins, losses, ties", `${count(cell.wins)}, ${count(cell.losses)}, ${count(cell.ties)}`],
  ]);
}

function beatsTable(picking, pairs) {
  const items = picking.places.map((place) => picking.order[place]);
  const records = beatsCells(items, pairs).map((cell) => ({ ...cell, one: label(items[cell.row]), other: label(items[cell.column]) }));
  return gridOf("Win shares, both directions", records, [
    ["one", "Row", "text", labelled],
    ["other", "Column", "text", labelled],
    ["share", "Row’s share", "number", (x) => percent(x, 1), -1],
    ["wins", "Wins", "number", count, -1],
    ["losses", "Losses", "number", count, -1],
    ["ties", "Ties", "number", count, -1],
  ]);
}
