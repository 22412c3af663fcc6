// A matrix of shares between 0 and 1 as coloured cells: who beats whom, who agrees with whom.

const CELL_TEXT = 24; // pixels from which a cell has room for its number

/** Sizes of a matrix of so many items: room for names, side of a cell, height of the chart. */
function matrixSize(width, items, most) {
  const names = nameWidth(width);
  const cell = Math.max(8, Math.min(most, (width - names - 8) / items));
  return { names, cell, height: 30 + cell * items };
}

/** cells: {row, column, share}; name and number: of an item; say: cell → tip. */
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
      const { share } = cells[point.dataIndex];
      const [x, y] = api.coord([api.value(0), api.value(1)]);
      const fill = heat(share, colour);
      const rect = { type: "rect", shape: shape(x, y), style: { fill } };
      if (size < CELL_TEXT) return rect;
      const style = { text: fixed(100 * share, 0), fill: readableOn(fill), fontSize: size >= 30 ? 11 : 10, x, y, align: "center", verticalAlign: "middle" };
      return { type: "group", children: [rect, { type: "text", style, silent: true }] };
    },
  };
}

/** What the colours mean. */
function scaleKey(low, high) {
  return make("p", { class: "key" }, make("span", { class: "mark" }, `0% ${low}`, make("span", { class: "scale", "aria-hidden": "true" }), `100% ${high}`));
}
