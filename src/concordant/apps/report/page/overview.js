// First what a reader should know: the verdict, who cannot be told apart, and what that rests on.

function drawOverview() {
  document.title = `${short(report.title, 80)} · concordant`;
  document.getElementById("title").replaceChildren(labelled(report.title));
  document.getElementById("facts").textContent = report.facts ?? "";
  const body = document.getElementById("overview-body");
  const [first, ...others] = report.in_short ?? [];
  const tiers = report.views.length ? tiersOf(report.views[0]) : null;
  if (first) {
    const more = others.length ? make("ul", { class: "plain" }, ...others.map((parts) => make("li", {}, ...sentence(parts)))) : null;
    body.append(make("div", { class: "findings" }, make("h2", {}, "In short"), make("p", { class: "verdict" }, ...sentence(first)), tiers, more));
  }
  body.append(...remarks());
  document.getElementById("made").replaceChildren(...madeBy());
}

/** A plain sentence, whose items are numbers among texts. */
function sentence(parts) {
  const item = (code) => make("bdi", {}, make("strong", {}, short(label(code), 80)));
  return parts.map((part) => (typeof part === "number" ? item(part) : part));
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
