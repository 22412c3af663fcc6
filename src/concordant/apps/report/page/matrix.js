// A matrix of shares between 0 and 1 as coloured cells: who beats whom, who agrees with whom.

const CELL_TEXT = 24; // pixels from which a cell has room for its number

/** Sizes of a matrix of so many items: room for names, side of a cell, height of the chart. */
function matrixSize(width, items, most) {
  const names = nameWidth(width);
  const cell = Math.max(8, Math.min(most, (width - names - 8) / items));
  return { names, cell, height: 30 + cell * items };
}

const ENOUGH = 20; // judgments from which a cell has its full colour
const FEW = 5; // below this it is hatched

/** cells: {row, column, share, all: judgments, where few make it pale}; name and number: of an item; say: cell → tip. */
function matrixOption(colour, { names, cell }, items, { cells, name, number, say }) {
  const side = cell * items;
  const data = Array.from({ length: items }, (_, at) => at);
  const axis = { type: "category", data, axisTick: { show: false }, axisLine: { show: false } };
  const lines = { splitLine: { show: true, interval: 0, lineStyle: { color: colour.line, width: 0.5 } } };
  return {
    grid: { left: names, top: 26, width: side, height: side, show: true, borderColor: colour.line },
    xAxis: { ...axis, ...lines, position: "top", axisLabel: { color: colour.soft, fontSize: 11, formatter: (at) => number(Number(at)) } },
    yAxis: {
      ...axis,
      ...lines,
      inverse: true,
      axisLabel: {
        color: colour.ink,
        interval: 0,
        fontSize: cell < 13 ? 9 : 12,
        width: names - 10,
        overflow: "truncate",
        formatter: (at) => `${number(Number(at))} ${name(Number(at))}`,
      },
    },
    tooltip: tooltip(colour, ({ dataIndex }) => say(cells[dataIndex])),
    series: [cellSeries(colour, cell, cells)],
  };
}

function cellSeries(colour, size, cells) {
  const shape = (x, y) => ({ x: x - size / 2 + 0.5, y: y - size / 2 + 0.5, width: size - 1, height: size - 1 });
  return {
    type: "custom",
    data: cells.map((cell) => [cell.column, cell.row, cell.share]),
    renderItem: (point, api) => {
      const { share, all = ENOUGH } = cells[point.dataIndex];
      const [x, y] = api.coord([api.value(0), api.value(1)]);
      const fill = paler(heat(share, colour), colour.paper, Math.sqrt(Math.min(1, all / ENOUGH)));
      const rect = { type: "rect", shape: shape(x, y), style: { fill } };
      const hatch = all < FEW ? hatched(shape(x, y), colour) : [];
      if (size < CELL_TEXT) return { type: "group", children: [rect, ...hatch] };
      const style = { text: fixed(100 * share, 0), fill: readableOn(fill), fontSize: size >= 30 ? 11 : 10, x, y, align: "center", verticalAlign: "middle" };
      return { type: "group", children: [rect, ...hatch, { type: "text", style, silent: true }] };
    },
  };
}

/** Lines across a cell that rests on next to nothing. */
function hatched({ x, y, width }, colour) {
  const line = (from, to) => ({ type: "line", silent: true, shape: { x1: x + from, y1: y + to, x2: x + to, y2: y + from }, style: { stroke: colour.soft, lineWidth: 0.7, opacity: 0.35 } });
  return [line(0, width / 2), line(0, width), { ...line(0, 0), shape: { x1: x + width / 2, y1: y + width, x2: x + width, y2: y + width / 2 } }];
}

/** What the colours mean. */
function scaleKey(low, high) {
  return make("p", { class: "key" }, make("span", { class: "mark" }, `0% ${low}`, make("span", { class: "scale", "aria-hidden": "true" }), `100% ${high}`));
}
