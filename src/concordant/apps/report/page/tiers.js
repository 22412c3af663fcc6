// The tiers of the first view as lines of names: who cannot be told apart stands on one line.

const TIERS_SHOWN = 8;
const NAMES_SHOWN = 14; // of a tier

/** Tiers, or, where there is one only, who may be the best; null where neither is known. */
function tiersOf(view) {
  const { item, tier = [], component } = view.ranking;
  const rows = item.map((_, row) => row).filter((row) => component[row] === 1 && known(tier[row]));
  const most = rows.reduce((last, row) => Math.max(last, tier[row]), 0);
  if (most > 1) return tierList(view, most, (at) => [`Tier ${at}`, rows.filter((row) => tier[row] === at)]);
  const lead = new Set(report.may_lead ?? []);
  if (lead.size < 2 || lead.size >= rows.length) return null;
  const named_ = [["May be the best", rows.filter((row) => lead.has(row))], ["Ruled out as the best", rows.filter((row) => !lead.has(row))]];
  return tierList(view, 2, (at) => named_[at - 1]);
}

function tierList(view, most, of) {
  const shown = Math.min(most, TIERS_SHOWN);
  const lines = Array.from({ length: shown }, (_, at) => tierLine(view, at, ...of(at + 1)));
  const rest = most - shown;
  if (rest) lines.push(make("li", { class: "more" }, `and ${plural(rest, "tier")} more, in the ranking below`));
  return make("ol", { class: "tiers", "aria-label": "Tiers, the best first" }, ...lines);
}

function tierLine(view, at, title, rows) {
  const names = rows.slice(0, NAMES_SHOWN).map((row) => make("bdi", { class: "chip" }, short(label(view.ranking.item[row]), 40)));
  const rest = rows.length - names.length;
  const more = rest > 0 ? make("span", { class: "soft" }, `and ${whole(rest)} more`) : null;
  return make("li", { class: at ? "" : "best" }, make("strong", {}, title), make("span", { class: "names" }, ...names, more));
}
