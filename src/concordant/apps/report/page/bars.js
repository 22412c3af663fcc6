// Horizontal bars with a text beside each.

/** rows: {name, x, kind: name of a colour, text, low, high, said}. */
function barsOption(colour, width, rows, format) {
  const names = nameWidth(width);
  const after = 16 + 7 * Math.max(...rows.map((row) => row.text.length));
  return {
    grid: { left: names, right: after, top: 26, bottom: 8 },
    xAxis: {
      type: "value",
      position: "top",
      axisLabel: { color: colour.soft, formatter: format, hideOverlap: true },
      splitLine: { lineStyle: { color: colour.line } },
      splitNumber: width < 640 ? 2 : 5,
    },
    yAxis: {
      ...nameAxis(colour, rows, 0, true, names),
      axisLine: { show: true, onZero: true, lineStyle: { color: colour.soft } },
    },
    tooltip: tooltip(colour, (point) => tip(rows[point.dataIndex].name, rows[point.dataIndex].said)),
    series: [
      {
        type: "bar",
        barMaxWidth: 14,
        data: rows.map((row) => ({ value: row.x, itemStyle: { color: colour[row.kind] } })),
        label: { show: true, position: "right", color: colour.ink, formatter: ({ dataIndex }) => rows[dataIndex].text },
      },
    ],
  };
}
