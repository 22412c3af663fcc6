// Which pairs to ask next.

function drawAsk(view) {
  const body = bodyOf("ask");
  body.replaceChildren();
  if (!view.ask || !view.ask.length) {
    body.append(...paragraphs([report.absent?.ask ?? "No questions were looked for in this view."], "absent"));
    return;
  }
  const rows = view.ask.map((row) => ({ ...row, one: label(row.first), other: label(row.second) }));
  const most = Math.max(0, ...rows.map((row) => row.gain).filter(Number.isFinite));
  const digits = digitsFor(rows.map((row) => row.gain));
  const gains = most > 0 || rows.some((row) => row.gain === "inf");
  const needed = view.settling?.more_if_as_seen;
  if (known(needed) && needed !== "inf" && needed > 0) body.append(...paragraphs([`About ${plural(Number(needed.toPrecision(2)), "more judgment")} would settle the first place, if its lead is as it looks.`]));
  if (view.settling?.status === "settled") body.append(...paragraphs(["The first place is settled; these pairs would tell most about the places below it."]));
  const columns = [
    ["number", "No.", "number", whole],
    ["one", "Ask", "text", labelled],
    ["other", "against", "text", labelled],
    ["reason", "Why", "text"],
    ["judgments", "Judgments so far", "number", count, -1],
    ["share", "Won by the first", "number", (x) => percent(x), -1],
    ["predicted", "Expected", "number", (x) => percent(x), -1],
    ["gain", "Gain", "number", (x) => gainShown(x, most, digits), -1],
  ].filter(([key]) => rows.some((row) => known(row[key])) && (key !== "gain" || gains));
  body.append(gridOf(`Pairs to ask next: ${view.name}`, rows, columns).node);
}

/** A gain with a bar of its length. */
function gainShown(gain, most, digits) {
  const length = make("span");
  const share = gain === "inf" ? 1 : most > 0 ? Math.max(0, gain ?? 0) / most : 0;
  length.style.width = `${100 * share}%`;
  return make("span", { class: "gain" }, make("span", { class: "bar", "aria-hidden": "true" }, length), fixed(gain, digits));
}
