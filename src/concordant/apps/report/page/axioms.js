// Whether the scorer keeps what people agree on: how often each could be checked, how often it is broken, and where.

function drawAxioms() {
  const body = bodyOf("axioms");
  const found = report.axioms;
  body.append(list([`The scorer is ${found.whose}.`, ...found.advice], "found"));
  body.append(axiomsGrid(found).node, ...explained(found.explained));
  let first = true;
  for (const row of found.rows) {
    const cases = found.cases.filter((one) => one.axiom === row.axiom);
    if (!cases.length) continue;
    body.append(casesFold(row, cases, first));
    first = false;
  }
  if (found.notes.length) body.append(make("details", { class: "notes" }, make("summary", {}, `Notes (${found.notes.length})`), list(found.notes.map(asSentence))));
}

function asSentence(line) {
  return line[0].toUpperCase() + line.slice(1) + (/[.!?]$/.test(line) ? "" : ".");
}

function axiomsGrid({ rows, level }) {
  const some = (key) => rows.some((row) => known(row[key]));
  const records = rows.map((row) => ({ ...row, share: row.of ? row.violated / row.of : null, real: known(row.lower) && row.violated ? (row.lower + row.upper) / 2 : null }));
  const columns = [
    ["title", "Asked of the scorer", "text", (_, row) => make("span", { class: "asked" }, row.title, " ", make("small", {}, `(${row.name})`))],
    ["of", "Checked", "number", whole, -1],
    ["violated", "Broken", "number", (x, row) => (row.of ? whole(x) : UNKNOWN), -1],
    ["share", "Share", "number", (x) => percent(x, x && x < 0.1 ? 1 : 0), -1],
    ...(some("lower") ? [["real", "Beyond noise", "number", (x, row) => (known(x) ? rangeSaid(Math.round(row.lower), Math.round(row.upper)) : UNKNOWN), -1]] : []),
    ...(some("sure") ? [["sure", "Each sure", "number", (x, row) => (row.violated ? whole(x) : UNKNOWN), -1]] : []),
    ...(some("best") ? [["best", "At best", "number", (x, row) => (known(x) && row.of ? rangeSaid(row.best_lower, x) : UNKNOWN), 1]] : []),
  ];
  return gridOf(`What people agree on, and how often the scorer breaks it (intervals of ${percent(level)})`, records, columns, { heading: "title", sticky: 1 });
}

/** The surest cases of an axiom; those of the first are open. */
function casesFold({ axiom, title, asks, violated }, cases, open) {
  const alike = axiom === "clones";
  const more = violated > cases.length ? `the ${plural(cases.length, "surest case")} of ${whole(violated)}` : plural(cases.length, "case");
  const has = (key) => cases.some((one) => known(one[key]));
  const digits = digitsFor(cases.flatMap((one) => [one.score, one.other_score]).filter(known));
  const columns = [
    ["query", "Query", "text", labelled],
    ["item", !has("other") ? "Order of" : alike ? "Item" : "Should be ahead", "text", labelled],
    ["other", alike ? "judged like" : "and is not, of", "text", labelled],
    ["votes", "Votes for", "number", whole, -1],
    ["against", "against", "number", whole, -1],
    ["score", "Its score", "number", (x) => fixed(x, digits), -1],
    ["other_score", "the other’s", "number", (x) => fixed(x, digits), -1],
    ["p_value", "By chance", "number", (x) => fixed(x, 3), 1],
  ].filter(([key]) => has(key));
  const grid = gridOf(`${title}: where it is broken`, cases, columns, { sizes: [10, 25] });
  return make("details", { class: "numbers cases", open }, make("summary", {}, `${title}: ${more}`), make("p", {}, asks), grid.node);
}
