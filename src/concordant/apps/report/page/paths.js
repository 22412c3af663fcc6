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
  const figure = new Figure(body, "Scores over time").withTable(() => pathsGrid(points, digits).node);
  figure.show({
    option: (colour, width) => pathsOption(colour, width, found, digits),
    height: (width) => Math.min(460, Math.max(300, width * 0.6)),
    said: `Scores over time of the ${plural(found.series.length, "item")} that rank first in the end; the numbers are in the table.`,
    rows: points.length,
  });
}

const LINES = ["#2f7fd1", "#d9772b", "#2e9e6b", "#b8559b", "#8268d6", "#a5831f", "#33a0b5", "#d0524a"]; // on light and dark paper

function pathsOption(colour, width, found, digits) {
  const shade = (at) => LINES[at % LINES.length];
  const ends = found.series.flatMap((one) => one.points.map((point) => point.at));
  return {
    grid: { left: 56, right: width > 560 ? 130 : 24, top: 24, bottom: 40 },
    xAxis: { type: "value", min: Math.min(...ends), max: Math.max(...ends), axisLabel: { color: colour.soft, formatter: (x) => timeSaid(found, x) }, splitLine: { show: false } },
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
      data: one.points.map((point) => [point.at, point.score]),
      ...(width > 560 ? { endLabel: { show: true, formatter: () => short(one.item, 18), color: shade(at), fontWeight: 600, lineHeight: 17 } } : {}),
    })),
  };
}

function timeSaid(found, x) {
  return found.dated ? new Date(x * 86400000).toISOString().slice(0, 7) : fixed(x, Number.isInteger(x) ? 0 : 1);
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
