// Points with intervals, a row each: what the ranking, the annotators and the scorer are drawn with.

const ROW = 22;

/**
 * rows: {name, x, low, high, said: [[term, text]…]}; panels: [{title, of: row → {x, low, high, kind: name of a colour}, format}] side by side, or
 * below each other where there is no room.
 */
function intervalsOption(colour, width, rows, panels) {
  const stacked = width < 640 && panels.length > 1;
  const names = nameWidth(width);
  const tall = rows.length * ROW;
  const each = stacked ? width - names - 16 : (width - names - 16 - 40 * (panels.length - 1)) / panels.length;
  const place = (at) => (stacked ? { left: names, top: 38 + at * (tall + 70) } : { left: names + at * (each + 40), top: 38 });
  return {
    grid: panels.map((_, at) => ({ ...place(at), width: each, height: tall })),
    xAxis: panels.map((panel, at) => valueAxis(colour, panel, at)),
    yAxis: panels.map((_, at) => nameAxis(colour, rows, at, stacked || at === 0, names)),
    tooltip: tooltip(colour, (point) => tip(rows[point.dataIndex].name, rows[point.dataIndex].said)),
    series: panels.map((panel, at) => intervalSeries(colour, rows, panel, at)),
  };
}

function intervalsHeight(rows, panels) {
  return (width) => (width < 640 && panels > 1 ? panels * (rows * ROW + 70) : rows * ROW + 46);
}

function nameWidth(width) {
  return Math.round(Math.min(230, 0.36 * width));
}

function valueAxis(colour, panel, at) {
  return {
    gridIndex: at,
    type: "value",
    position: "top",
    name: panel.title,
    nameLocation: "middle",
    nameGap: 22,
    nameTextStyle: { color: colour.ink, fontWeight: 600 },
    scale: true,
    inverse: Boolean(panel.inverse),
    min: panel.min,
    minInterval: panel.minInterval,
    axisLabel: { color: colour.soft, formatter: panel.format, hideOverlap: true },
    splitLine: { lineStyle: { color: colour.line } },
  };
}

function nameAxis(colour, rows, at, shown, width) {
  return {
    gridIndex: at,
    type: "category",
    inverse: true,
    data: rows.map((_, row) => row),
    axisLine: { lineStyle: { color: colour.line } },
    axisTick: { show: false },
    axisLabel: {
      show: shown,
      interval: 0,
      color: colour.ink,
      formatter: (row) => short(rows[Number(row)].name, 40),
      width: width - 10,
      overflow: "truncate",
    },
  };
}

function intervalSeries(colour, rows, panel, at) {
  const data = rows.map((row, y) => {
    const { x, low, high } = panel.of(row);
    const [from, to] = [low, high].map((bound) => (typeof bound === "number" ? bound : NaN));
    return [x ?? NaN, y, from, to];
  });
  return {
    type: "custom",
    xAxisIndex: at,
    yAxisIndex: at,
    clip: false,
    dimensions: ["x", "row", "low", "high"],
    encode: { x: [0, 2, 3], y: 1 },
    data,
    renderItem: (point, api) => drawInterval(colour, point, api, panel.of(rows[point.dataIndex])),
  };
}

/** A point with its interval; one without a bound runs to the edge and ends in an arrow. */
function drawInterval(colour, { coordSys: area }, api, { low, high, kind }) {
  const shade = colour[kind ?? "accent"];
  const [x, y] = api.coord([api.value(0), api.value(1)]);
  const place = (at) => api.coord([api.value(at), api.value(1)])[0];
  const from = low === "-inf" ? area.x + 6 : place(2);
  const to = high === "inf" ? area.x + area.width - 6 : place(3);
  const faint = { stroke: shade, fill: shade, opacity: 0.4 };
  const children = [];
  if (Number.isFinite(from) && Number.isFinite(to)) {
    children.push({ type: "line", shape: { x1: from, y1: y, x2: to, y2: y }, style: { ...faint, lineWidth: 4, lineCap: "round" } });
  }
  if (low === "-inf") children.push(openEnd(from, y, -6, faint));
  if (high === "inf") children.push(openEnd(to, y, 6, faint));
  if (Number.isFinite(x)) children.push({ type: "circle", shape: { cx: x, cy: y, r: 4 }, style: { fill: shade } });
  return { type: "group", children };
}

function openEnd(x, y, way, style) {
  return { type: "polygon", shape: { points: [[x, y - 5], [x + way, y], [x, y + 5]] }, style };
}
