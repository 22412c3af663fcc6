// The difference graph as arcs beside the ranking: with it on the right, against it on the left, cycles marked.

let graphFigure = null;

function drawGraph(view) {
  const body = bodyOf("graph");
  body.replaceChildren();
  const graph = view.graph;
  if (!graph || !graph.edges.length) {
    body.append(...paragraphs([report.absent?.graph ?? "No pair of these items has a winner."], "absent"));
    return;
  }
  const net = new Net(view);
  const redraw = () => showGraph(net);
  const chart = make("div", {});
  body.append(...paragraphs([cyclesSaid(net)]), ...cycleList(net), graphTools(net, redraw), graphKey(), chart, ...graphNotes(graph));
  const drawTable = () => graphTable(net).node;
  graphFigure = renewFigure(graphFigure, chart, "Net preferences");
  if (graphFigure.table) graphFigure.table.draw = drawTable;
  else graphFigure.withTable(drawTable);
  redraw();
}

/** Nodes in the order of the ranking; edges with what the chart and the table need of them. */
class Net {
  constructor({ graph, ranking }) {
    const known_ = new Set(graph.nodes);
    this.nodes = ranking.item.filter((code) => known_.has(code));
    const listed = new Set(this.nodes);
    this.nodes.push(...graph.nodes.filter((code) => !listed.has(code)));
    this.place = new Map(this.nodes.map((code, at) => [code, at]));
    this.cycles = graph.cycles ?? [];
    this.short = new Set(this.cycles.flatMap((cycle) => cycle.map((code, at) => `${code} ${cycle[(at + 1) % cycle.length]}`)));
    this.edges = graph.edges.map((edge) => this.edge(edge));
    this.wanted = "all";
    this.arrows = window.innerWidth < 640 ? 12 : FIRST_ARROWS;
    this.picking = new Picking(this.nodes, this.edges.map((edge) => [edge.winner, edge.loser]), Math.min(20, this.nodes.length));
    this.most = Math.max(...this.edges.map((edge) => edge.net));
  }

  edge([winner, loser, net, judgments, holds, cyclic]) {
    const on_ = this.short.has(`${winner} ${loser}`) ? "shortest" : cyclic ? "cycle" : "none";
    return { winner, loser, net, judgments, holds, on: on_, from: this.place.get(winner), to: this.place.get(loser) };
  }

  /** The edges between the items shown that are wanted, the strongest last. */
  chosen(shown) {
    const wanted = { all: () => true, cycle: (edge) => edge.on === "shortest", against: (edge) => edge.from > edge.to };
    const found = this.edges.filter((edge) => shown.has(edge.from) && shown.has(edge.to) && wanted[this.wanted](edge));
    return found.sort((a, b) => Number(a.on === "shortest") - Number(b.on === "shortest") || a.net - b.net);
  }

  /** Places of the items shown: those picked, or those on the shortest cycles. */
  get shown() {
    if (this.wanted !== "cycle") return this.picking.places;
    return [...new Set(this.cycles.flat())].map((code) => this.place.get(code)).sort((a, b) => a - b);
  }
}

function cyclesSaid(net) {
  const cyclic = net.edges.filter((edge) => edge.on !== "none").length;
  if (!cyclic) return `No cycles: ${plural(net.edges.length, "net preference")}, and an order agrees with all of them.`;
  return `${plural(cyclic, "net preference")} of ${whole(net.edges.length)} lie on cycles. Shortest of each knot:`;
}

const CYCLES_LISTED = 8;

function cycleList(net) {
  if (!net.cycles.length) return [];
  const lines = net.cycles.slice(0, CYCLES_LISTED).map((cycle) => cycleLine(cycle));
  const more = net.cycles.length - CYCLES_LISTED;
  if (more > 0) lines.push([`and ${plural(more, "more")}`]);
  return [make("ul", { class: "cycles" }, ...lines.map((line) => make("li", {}, ...line)))];
}

function cycleLine(cycle) {
  return [...cycle, cycle[0]].flatMap((code, at) => (at ? [" → ", labelled(label(code))] : [labelled(label(code))]));
}

function graphTools(net, redraw) {
  const tools = make("div", { class: "tools" });
  const kinds = [["all", "all"], ["cycle", "on the shortest cycles"], ["against", "against the ranking"]];
  const offered = net.cycles.length ? kinds : kinds.filter(([kind]) => kind !== "cycle");
  const change = (value) => {
    net.wanted = value;
    redraw();
  };
  tools.append(arrowSlider(net, redraw), choice("Arrows", offered, net.wanted, change), ...net.picking.controls(sizesUpTo(net.nodes.length, 60), redraw));
  return tools;
}

/** How many arrows are drawn, the strongest first. */
function arrowSlider(net, redraw) {
  const id = freshId("arrows");
  const input = make("input", { id, type: "range", min: 1, max: ARROWS, step: 1, value: net.arrows });
  const shown = make("output", { for: id, "aria-live": "off" });
  net.limit = (most) => {
    const said = most ? `${whole(Math.min(net.arrows, most))} of ${whole(most)}` : "none";
    input.max = Math.max(1, most);
    shown.textContent = said;
    input.setAttribute("aria-valuetext", said);
  };
  on(input, "input", () => {
    net.arrows = Number(input.value);
    redraw();
  });
  return make("span", { class: "control slider" }, make("label", { for: id }, "Strongest arrows"), input, shown);
}

function graphKey() {
  const mark = (kind, said) => make("span", { class: "mark" }, make("span", { class: `stroke ${kind}`, "aria-hidden": "true" }), said);
  return make("p", { class: "key" }, mark("plain", "on no cycle"), mark("dashed", "on some cycle"), mark("heavy", "on a shortest cycle"), "Wider: stronger. Fainter: its direction is less sure.");
}

function graphNotes({ left_out: gone }) {
  return gone ? paragraphs([`${plural(gone, "net preference")} not on this page.`], "note") : [];
}

const ARROWS = 150; // more would be neither read nor quick
const FIRST_ARROWS = 25;

function showGraph(net) {
  const shown = net.shown;
  const all = net.chosen(new Set(shown));
  const edges = all.slice(-net.arrows);
  net.limit(Math.min(all.length, ARROWS));
  const strongest = edges.length < all.length ? `, the strongest of ${whole(all.length)}` : "";
  const nodes = shown.map((at) => ({ code: net.nodes[at], at }));
  const row = new Map(nodes.map(({ at }, place) => [at, place]));
  graphFigure.caption.textContent = `${plural(edges.length, "arrow")}${strongest} between ${plural(nodes.length, "item")}, the best on top`;
  graphFigure.show({
    option: (colour, width) => graphOption(colour, width, net, nodes, row, edges),
    height: () => nodes.length * ROW + 16,
    said: `Graph of net preferences: ${plural(edges.length, "arrow")} between ${plural(nodes.length, "item")}. ${plural(net.cycles.length, "shortest cycle")} marked. The numbers are in the table below.`,
    rows: net.edges.length,
  });
}

function graphOption(colour, width, net, nodes, row, edges) {
  const names = nameWidth(width);
  const tall = nodes.length * ROW;
  const middle = 0.42;
  return {
    grid: { left: names, right: 8, top: 8, height: tall },
    xAxis: { type: "value", min: 0, max: 1, show: false },
    yAxis: {
      type: "category",
      inverse: true,
      data: nodes.map((_, at) => at),
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { show: false },
      axisLabel: { interval: 0, color: colour.ink, width: names - 10, overflow: "truncate", formatter: (at) => short(label(nodes[Number(at)].code), 40) },
    },
    tooltip: tooltip(colour, (point) => graphTip(point, nodes, edges)),
    series: [arcs(colour, width - names - 8, middle, nodes, row, edges, net.most), dots(colour, middle, nodes)],
  };
}

/** Arcs from winner to loser: to the right downwards, to the left upwards; wider where the preference is stronger. */
function arcs(colour, room, middle, nodes, row, edges, most) {
  const farthest = Math.max(12, nodes.length - 1);
  const looks = {
    shortest: { stroke: colour.warn, lineDash: null, opacity: 1 },
    cycle: { stroke: colour.warn, lineDash: [5, 4], opacity: 0.9 },
    none: { stroke: colour.accent, lineDash: null, opacity: 0.8 },
  };
  return {
    type: "custom",
    data: edges.map((edge) => [middle, row.get(edge.from), row.get(edge.to)]),
    clip: false,
    renderItem: (point, api) => {
      const edge = edges[point.dataIndex];
      const [x, from] = api.coord([middle, api.value(1)]);
      const to = api.coord([middle, api.value(2)])[1];
      const down = to > from;
      const wide = (down ? room * (1 - middle) : room * middle) - 14;
      const far = Math.min(wide, 14 + (wide - 14) * Math.sqrt(Math.abs(api.value(1) - api.value(2)) / farthest));
      const sure = known(edge.holds) ? Math.max(0.25, 2 * edge.holds - 1) : 1;
      const look = { ...looks[edge.on], opacity: edge.on === "shortest" ? 1 : looks[edge.on].opacity * sure };
      return arc(x, from, to, down ? far : -far, { ...look, fill: null, lineWidth: 1 + 2 * (edge.net / most) });
    },
  };
}

function arc(x, from, to, far, style) {
  const way = Math.sign(to - from);
  const end = to - way * 4;
  const line = { x1: x, y1: from, x2: x + Math.sign(far) * 5, y2: end, cpx1: x + far * 1.33, cpy1: from, cpx2: x + far * 1.33, cpy2: to };
  const tipX = line.x2;
  const points = [[tipX - 1 * Math.sign(far), end + way * 2], [tipX + 8 * Math.sign(far), end + way * -1], [tipX + 6 * Math.sign(far), end + way * 6]];
  const head = { type: "polygon", shape: { points }, style: { fill: style.stroke, opacity: style.opacity } };
  return { type: "group", children: [{ type: "bezierCurve", shape: line, style }, head] };
}

function dots(colour, middle, nodes) {
  return { type: "scatter", symbolSize: 8, itemStyle: { color: colour.ink, opacity: 1 }, data: nodes.map((_, at) => [middle, at]), z: 5 };
}

function graphTip({ seriesIndex, dataIndex }, nodes, edges) {
  if (seriesIndex === 1) return tip(label(nodes[dataIndex].code), [["Place", whole(nodes[dataIndex].at + 1)]]);
  const edge = edges[dataIndex];
  return tip(`${short(label(edge.winner), 40)} over ${short(label(edge.loser), 40)}`, [
    ["Net preference per judgment", fixed(edge.net, digitsFor([edge.net]))],
    ["Judgments of the pair", count(edge.judgments)],
    ["Direction holds in", known(edge.holds) ? `${percent(edge.holds)} of resamples` : UNKNOWN],
    ["Cycle", CYCLE_WORDS[edge.on]],
  ]);
}

const CYCLE_WORDS = { shortest: "on a shortest cycle", cycle: "on a cycle", none: "on none" };

function graphTable(net) {
  const digits = digitsFor(net.edges.map((edge) => edge.net));
  const records = net.edges.map((edge) => ({ ...edge, one: label(edge.winner), other: label(edge.loser), cyclic: CYCLE_WORDS[edge.on] }));
  return gridOf("Net preferences", records, [
    ["one", "Preferred", "text", labelled],
    ["other", "to", "text", labelled],
    ["net", "Net per judgment", "number", (x) => fixed(x, digits), -1],
    ["judgments", "Judgments", "number", count, -1],
    ["holds", "Direction holds", "number", (x) => percent(x), -1],
    ["cyclic", "Cycle", "text"],
  ]);
}
