// Colours of the charts: those of the style sheet, so that charts follow dark mode and print.

function colours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ["paper", "ink", "soft", "line", "faint", "accent", "warn", "heat-low", "heat-middle", "heat-high"];
  return Object.fromEntries(names.map((name) => [name.replace("-", "_"), read(name)]));
}

function channels(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

/** The colour of a share in [0, 1] between low, middle and high. */
function heat(share, { heat_low: low, heat_middle: middle, heat_high: high }) {
  const [from, to, at] = share < 0.5 ? [low, middle, 2 * share] : [middle, high, 2 * share - 1];
  const mixed = channels(from).map((x, i) => Math.round(x + (channels(to)[i] - x) * at));
  return `#${mixed.map((x) => x.toString(16).padStart(2, "0")).join("")}`;
}

/** A colour brought nearer to the paper; strength 1 leaves it. */
function paler(colour, paper, strength) {
  const mixed = channels(paper).map((x, i) => Math.round(x + (channels(colour)[i] - x) * strength));
  return `#${mixed.map((x) => x.toString(16).padStart(2, "0")).join("")}`;
}

/** Black or white, whichever is read better on a colour (WCAG's relative luminance). */
function readableOn(colour) {
  const linear = channels(colour).map((x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return (light + 0.05) ** 2 > 1.05 * 0.05 ? "#000000" : "#ffffff";
}
