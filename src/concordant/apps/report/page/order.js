// Held-out loss for each order (or ridge) tried, with the one chosen.

const AXES = {
  order: { title: "Risk against k", name: "k, judgments aggregated at a time" },
  ridge: { title: "Risk against the ridge", name: "ridge" },
};

function drawOrder() {
  const body = bodyOf("order");
  const found = report.order;
  if (!found) {
    absent("order", "No order was chosen here.");
    return;
  }
  body.append(...explained(found.explained));
  document.getElementById("order-title").textContent = AXES[found.axis]?.title ?? "Risk by setting";
  const points = found.points;
  const chosen = points.find((point) => point.chosen);
  const digits = digitsFor(points.map((point) => point.loss)) + 1;
  const name = AXES[found.axis]?.name ?? found.axis;
  const figure = new Figure(body, `Risk on judgments held out, by ${name}`).withTable(() => orderGrid(found, digits).node);
  figure.show({
    option: (colour) => orderOption(colour, found, name, digits),
    height: (width) => Math.min(320, Math.max(220, width * 0.5)),
    said: `Risk on judgments held out by ${name}, ${plural(points.length, "value")}${chosen ? `; chosen: ${chosen.order}, risk ${fixed(chosen.loss, digits)}` : ""}.`,
    rows: points.length,
  });
}

function orderOption(colour, { axis, points }, name, digits) {
  const style = (point) => (point.chosen ? { symbol: "diamond", symbolSize: 15, itemStyle: { color: colour.warn } } : { symbol: "circle", symbolSize: 8 });
  return {
    grid: { left: 68, right: 24, top: 30, bottom: 48 },
    xAxis: { type: "category", data: points.map((_, at) => at), name, nameLocation: "middle", nameGap: 28, nameTextStyle: { color: colour.ink }, axisLabel: { color: colour.soft, formatter: (at) => short(String(points[Number(at)].order), 12) } },
    yAxis: { type: "value", scale: true, name: "risk", nameTextStyle: { color: colour.ink }, axisLabel: { color: colour.soft, formatter: (x) => fixed(x, Math.min(digits, 4)) }, splitLine: { lineStyle: { color: colour.line } } },
    tooltip: tooltip(colour, (point) => (point.seriesIndex === 0 ? null : orderTip(axis, points[point.dataIndex], digits))),
    series: [
      errorBars(colour, points),
      {
        type: "line",
        color: colour.accent,
        lineStyle: { width: 1.5, opacity: 0.6 },
        data: points.map((point) => ({ value: point.loss, ...style(point), label: { show: Boolean(point.chosen), formatter: "chosen", position: "right", distance: 10, color: colour.ink, fontWeight: 600 } })),
      },
    ],
  };
}

function errorBars(colour, points) {
  const data = points.map((point, at) => [at, point.loss, point.loss - (point.standard_error ?? 0), point.loss + (point.standard_error ?? 0)]);
  return {
    type: "custom",
    data,
    encode: { x: 0, y: [1, 2, 3] },
    silent: true,
    renderItem: (_, api) => {
      const [x, low] = api.coord([api.value(0), api.value(2)]);
      const high = api.coord([api.value(0), api.value(3)])[1];
      return { type: "line", shape: { x1: x, y1: low, x2: x, y2: high }, style: { stroke: colour.accent, lineWidth: 2, opacity: 0.55 } };
    },
  };
}

function orderTip(axis, point, digits) {
  return tip(`${axis === "order" ? "k" : axis} ${point.order}`, [["Risk", fixed(point.loss, digits)], ["Standard error", fixed(point.standard_error, digits)], ["Chosen", point.chosen ? "yes" : "no"]]);
}

function orderGrid({ axis, points }, digits) {
  const records = points.map((point) => ({ ...point, order: String(point.order), said: point.chosen ? "chosen" : "" }));
  return gridOf(`Risk on judgments held out by ${axis === "order" ? "k" : axis}`, records, [
    ["order", axis === "order" ? "k" : axis, "text"],
    ["loss", "Risk", "number", (x) => fixed(x, digits)],
    ["standard_error", "Standard error", "number", (x) => fixed(x, digits)],
    ["said", "Chosen", "text"],
  ], { heading: "order" });
}
