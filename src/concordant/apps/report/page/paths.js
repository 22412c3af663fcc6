// Abilities over time of the items that rank first in the end, each with the interval of the one that is picked out.

function drawPaths() {
  const body = bodyOf("paths");
  const found = report.paths;
  if (!found) {
    absent("paths", "The report was made without times.");
    return;
  }
  body.append(...explained(found.explained));
  const points = found.series.flatMap((one) => one.points.map((point) => ({ item: one.item, ...point })));
  const digits = digitsFor(points.map((point) => point.score));
  const show = (ranks) => figure.show({
    option: (colour, width) => (ranks ? rankPathsOption(colour, width, found) : pathsOption(colour, width, found, digits)),
    height: (width) => Math.min(460, Math.max(300, width * 0.6)),
    said: `Scores over time of the ${plural(found.series.length, "item")} that rank first in the end; the numbers are in the table.`,
    rows: points.length,
  });
  if (found.periods) body.append(make("div", { class: "tools" }, choice("Show", [["scores", "scores"], ["ranks", "ranks"]], "scores", (chosen) => show(chosen === "ranks"))));
  const figure = new Figure(body, `The ${plural(found.series.length, "item")} that rank first in the end, over time`).withTable(() => pathsGrid(points, digits).node);
  show(false);
  figure.box.before(lineKey(found.series));
  if (found.periods) periodsTable(body, found.periods);
}

/** Which line is whose, where there is no room at their ends. */
function lineKey(series) {
  return make("p", { class: "key narrow" }, ...series.map((one, at) => {
    const stroke = make("span", { class: "stroke", "aria-hidden": "true" });
    stroke.style.borderTopColor = LINES[at % LINES.length];
    return make("span", { class: "mark" }, stroke, make("bdi", {}, short(one.item, 24)));
  }));
}

/** Ranks at the end of each period, with their ranges. */
function periodsTable(body, { labels, items, ranks, left_out: gone }) {
  const cell = (one) => (one ? { rank: one[0], from: one[1], to: one[2] } : null);
  const columns = labels.map((title, at) => [title, (row) => cell(ranks[at][row])]);
  body.append(
    make("h3", {}, "Ranks, period by period"),
    ...paragraphs(["At the end of each period (named by its beginning), small beside each rank those that are possible. A dash: not judged yet, or not for a quarter of the whole time."], "note"),
    ranksGrid("Ranks, period by period", items, columns.reverse()).node,
    ...(gone ? paragraphs([`${plural(gone, "item")} of lower rank not on this page.`], "note") : []),
  );
}

function rankPathsOption(colour, width, found) {
  const { at, ranks, labels } = found.periods;
  const option = pathsOption(colour, width, found, 0);
  const points = (row) => at.map((x, place) => [instantOf(found, x), ranks[place][row]?.[0] ?? null]);
  const worst = Math.max(...ranks.flatMap((one) => one.slice(0, found.series.length).map((cell) => cell?.[0] ?? 1)));
  return {
    ...option,
    xAxis: { ...option.xAxis, min: instantOf(found, at[0]), max: instantOf(found, at[at.length - 1]) },
    yAxis: { ...option.yAxis, name: "rank", inverse: true, min: 1, max: Math.max(worst, 2), minInterval: 1, nameLocation: "start", axisLabel: { color: colour.soft, formatter: whole } },
    tooltip: tooltip(colour, (point) => {
      const [rank, from, to] = ranks[point.dataIndex][point.seriesIndex] ?? [];
      return tip(found.series[point.seriesIndex].item, [["Time", labels[point.dataIndex]], ["Rank", `${whole(rank)} (${rangeSaid(from, to)})`]]);
    }),
    series: option.series.map((one, row) => ({ ...one, showSymbol: true, symbolSize: 7, data: points(row) })),
  };
}

const LINES = ["#2f7fd1", "#d9772b", "#2e9e6b", "#b8559b", "#8268d6", "#a5831f", "#33a0b5", "#d0524a"]; // on light and dark paper

function pathsOption(colour, width, found, digits) {
  const shade = (at) => LINES[at % LINES.length];
  const ends = found.series.flatMap((one) => one.points.map((point) => instantOf(found, point.at)));
  return {
    grid: { left: 56, right: width > 560 ? 130 : 24, top: 24, bottom: 40 },
    useUTC: true,
    xAxis: { type: found.dated ? "time" : "value", min: Math.min(...ends), max: Math.max(...ends), axisLabel: { color: colour.soft, hideOverlap: true }, splitLine: { show: false } },
    yAxis: { type: "value", scale: true, name: "score", nameTextStyle: { color: colour.ink }, axisLabel: { color: colour.soft, formatter: (x) => fixed(x, 1) }, splitLine: { lineStyle: { color: colour.line } } },
    tooltip: tooltip(colour, (point) => pathTip(found.series[point.seriesIndex], point.dataIndex, digits)),
    series: found.series.map((one, at) => ({
      type: "line",
      color: shade(at),
      symbolSize: 5,
      showSymbol: one.points.length < 40,
      emphasis: { focus: "series" },
      labelLayout: { moveOverlap: "shiftY" },
      lineStyle: { width: at === 0 ? 2.5 : 1.5 },
      data: one.points.map((point) => [instantOf(found, point.at), point.score]),
      ...(width > 560 ? { endLabel: { show: true, formatter: () => short(one.item, 18), color: shade(at), fontWeight: 600, lineHeight: 17 } } : {}),
    })),
  };
}

/** A time as an axis takes it: dates are days, and axes count milliseconds. */
function instantOf(found, at) {
  return found.dated ? at * 86400000 : at;
}

function pathTip(one, at, digits) {
  const point = one.points[at];
  return tip(one.item, [["Time", point.time], ["Score", signed(point.score, digits)], ["Interval", `${signed(point.lower, digits)} … ${signed(point.upper, digits)}`]]);
}

function pathsGrid(points, digits) {
  return gridOf("Scores over time", points, [
    ["item", "Item", "text"],
    ["time", "Time", "text"],
    ["score", "Score", "number", (x) => signed(x, digits)],
    ["lower", "Lower", "number", (x) => signed(x, digits)],
    ["upper", "Upper", "number", (x) => signed(x, digits)],
  ], { heading: "item" });
}
