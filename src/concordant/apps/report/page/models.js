// People beside judge models: what people say of each item, what both say together, and how far the model is off.

const MODEL_ROWS = 40;

function drawModels() {
  const body = bodyOf("models");
  for (const found of report.models) {
    if (report.models.length > 1) body.append(make("h3", {}, make("bdi", {}, found.judge)));
    body.append(list(found.said.map((line) => line[0].toUpperCase() + line.slice(1) + (/[.!?]$/.test(line) ? "" : "."))));
    modelFigure(body, found);
  }
}

function modelFigure(body, { judge, rows, scored }) {
  const digits = digitsFor(rows.map((row) => row.people_score));
  const reach = (x, low, high) => `${signed(x, digits)} (${signed(low, digits)} … ${signed(high, digits)})`;
  const shown = rows.slice(0, MODEL_ROWS).map((row) => ({
    name: row.item,
    row,
    said: [
      ["People", reach(row.people_score, row.people_lower, row.people_upper)],
      ["With the model", reach(row.score, row.lower, row.upper)],
      ["The model alone", signed(row.judge_score, digits)],
      ["It is off by", reach(row.bias, row.bias_lower, row.bias_upper)],
      [scored ? "Tasks that people scored" : "Comparisons by people", whole(row.decided)],
    ],
  }));
  const format = (x) => fixed(x, x % 1 ? 1 : 0);
  const panels = [
    { title: "People with the model", of: ({ row }) => ({ x: row.score, low: row.lower, high: row.upper }), format },
    { title: "The model alone is off by", of: ({ row }) => ({ x: row.bias, low: row.bias_lower, high: row.bias_upper, kind: row.off ? "warn" : "accent" }), format },
  ];
  body.append(...paragraphs(["Orange: the model alone is off by more than chance."], "key"));
  const title = `Scores by people and ${short(judge, 40)}${rows.length > MODEL_ROWS ? `: the best ${MODEL_ROWS} of ${whole(rows.length)}` : ""}`;
  const figure = new Figure(body, title).withTable(() => modelGrid(judge, rows, digits).node);
  figure.show({
    option: (colour, width) => intervalsOption(colour, width, shown, panels),
    height: intervalsHeight(shown.length, panels.length),
    said: `${title}, with intervals. The numbers are in the table below.`,
    rows: rows.length,
  });
}

function modelGrid(judge, rows, digits) {
  const number = (x) => signed(x, digits);
  const records = rows.map((row, at) => ({ ...row, place: at + 1, verdict: row.off ? "yes" : "no" }));
  return gridOf(`People beside ${judge}`, records, [
    ["place", "Place", "number", whole],
    ["item", "Item", "text", labelled],
    ["score", "Both", "number", number, -1],
    ["lower", "from", "number", number, -1],
    ["upper", "to", "number", number, -1],
    ["people_score", "People alone", "number", number, -1],
    ["people_lower", "from", "number", number, -1],
    ["people_upper", "to", "number", number, -1],
    ["judge_score", "Model alone", "number", number, -1],
    ["bias", "off by", "number", number, -1],
    ["verdict", "More than chance", "text"],
    ["decided", "By people", "number", whole, -1],
  ], { heading: "item" });
}
