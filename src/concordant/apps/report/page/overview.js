// First what a reader should know: what was looked at, and what the audit found, in words.

function drawOverview() {
  document.title = `${short(report.title, 80)} · concordant`;
  document.getElementById("title").replaceChildren(labelled(report.title));
  document.getElementById("facts").textContent = report.facts ?? "";
  const body = document.getElementById("overview-body");
  const first = leaders();
  if (first) body.append(first);
  const short_ = findings(report.in_short ?? [], report.audit?.lines ?? []);
  if (short_) body.append(short_);
  body.append(...remarks());
  document.getElementById("made").replaceChildren(...madeBy());
}

/** Plain sentences, whose items are numbers among texts; then what the audit says. */
function findings(sentences, audited) {
  const item = (code) => make("bdi", {}, make("strong", {}, short(label(code), 80)));
  const plain = sentences.map((parts) => make("li", {}, ...parts.map((part) => (typeof part === "number" ? item(part) : part))));
  const said = audited.filter((line) => line !== report.facts);
  if (!plain.length && !said.length) return null;
  const audit = said.length ? [make("h3", {}, "What the audit found"), list(said)] : [];
  return make("div", { class: "findings" }, make("h2", {}, "In short"), make("ul", { class: "plain" }, ...plain), ...audit);
}

/** The head of the first view's ranking, with the ranks that are possible. */
function leaders() {
  const view = report.views[0];
  if (!view) return null;
  const { item, rank, rank_lower: from, rank_upper: to } = view.ranking;
  const where = `${view.components > 1 ? ", largest group" : ""}${view.pooled || report.views.length === 1 ? "" : `, query ${short(view.name, 40)}`}`;
  const sure = known(report.settings?.level) ? ` at ${percent(report.settings.level)}` : "";
  const top = [0, 1, 2].filter((at) => at < item.length && view.ranking.component[at] === 1);
  const each = top.map((at) => {
    const range = from[at] > 0 ? `${from[at] === to[at] ? `only rank ${from[at]}` : `ranks ${from[at]}–${to[at]}`} possible${sure}` : "";
    return [`Rank ${rank[at]}${where}`, make("span", {}, labelled(label(item[at])), make("small", {}, range))];
  });
  return facts(each, "top");
}

function remarks() {
  const said = [...(report.notes ?? []), ...(report.audit?.notes ?? [])];
  const gone = report.left_out ?? [];
  const folds = [["Notes", said], ["What this page leaves out, and how to get it", gone]];
  return folds
    .filter(([, lines]) => lines.length)
    .map(([title, lines]) => make("details", { class: "notes" }, make("summary", {}, `${title} (${lines.length})`), list(lines)));
}

function madeBy() {
  const settings = Object.entries(report.settings ?? {}).filter(([, value]) => known(value));
  const said = settings.map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`);
  return [
    `Made by concordant${report.version ? ` ${report.version}` : ""}${said.length ? `: ${said.join(", ")}. ` : ". "}`,
    report.command ? make("code", {}, report.command) : null,
    make("br"),
    "Charts: Apache ECharts 6.1.0 (Apache License 2.0). This file is whole: it loads nothing and sends nothing.",
  ].filter((part) => part !== null);
}
