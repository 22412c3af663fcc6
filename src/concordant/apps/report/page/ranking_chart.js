// The ranking as a chart: scores and ranks of the rows that the table shows, each with its interval.

const CHARTED = 50;

function drawRankingChart(view, shown) {
  const held = view.ranking;
  const digits = digitsFor(held.score);
  const rows = shown.slice(0, CHARTED).map((row) => ({
    name: label(held.item[row]),
    score: { x: held.score[row], low: held.lower[row], high: held.upper[row] },
    rank: { x: held.rank[row], low: held.rank_lower[row] || null, high: held.rank_upper[row] || null },
    said: [
      ["Rank", `${whole(held.rank[row])} (${rangeSaid(held.rank_lower[row], held.rank_upper[row])})`],
      ["Score", `${signed(held.score[row], digits)} (${signed(held.lower[row], digits)} … ${signed(held.upper[row], digits)})`],
      ["Judgments", count(held.judgments[row])],
    ],
  }));
  const panels = [
    { title: "Score", of: (row) => row.score, format: (x) => fixed(x, x % 1 ? Math.min(digits, 2) : 0) },
    { title: "Rank", of: (row) => row.rank, format: (x) => (x < 1 ? "" : whole(x)), minInterval: 1, min: 1 },
  ];
  const more = shown.length > CHARTED ? ` The first ${CHARTED} of the rows above.` : "";
  rankingFigure.show({
    option: (colour, width) => intervalsOption(colour, width, rows, panels),
    height: intervalsHeight(rows.length, panels.length),
    said: `Scores with intervals, and ranks that are possible, of ${rows.length} items.${more} The numbers are in the table above.`,
  });
}
