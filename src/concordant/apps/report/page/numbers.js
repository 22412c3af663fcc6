// How numbers and labels are written. Unknown is a dash, never a zero.

const UNKNOWN = "–";

function known(x) {
  return x !== null && x !== undefined;
}

function infinite(x) {
  return x === "inf" ? "∞" : x === "-inf" ? "−∞" : null;
}

function fixed(x, digits = 2) {
  if (!known(x)) return UNKNOWN;
  if (typeof x !== "number") return infinite(x) ?? String(x);
  const text = Math.abs(x) >= 1e7 ? x.toPrecision(4) : x.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

function signed(x, digits = 2) {
  const text = fixed(x, digits);
  return typeof x === "number" && Number(x.toFixed(digits)) > 0 ? `+${text}` : text;
}

function whole(x) {
  if (!known(x)) return UNKNOWN;
  return typeof x === "number" ? Math.round(x).toLocaleString("en-US") : infinite(x) ?? String(x);
}

/** Counts may be weights: whole where they are whole, else two digits. */
function count(x) {
  return typeof x === "number" && !Number.isInteger(x) ? fixed(x, 2) : whole(x);
}

function percent(x, digits = 0) {
  return typeof x === "number" ? `${fixed(100 * x, digits)}%` : fixed(x);
}

/** Digits after the point that tell numbers of this size apart. */
function digitsFor(values) {
  const size = values.reduce((most, x) => (typeof x === "number" ? Math.max(most, Math.abs(x)) : most), 0);
  if (size === 0) return 2;
  return Math.min(8, Math.max(0, 3 - Math.ceil(Math.log10(size))));
}

function plural(n, one, many = `${one}s`) {
  return `${whole(n)} ${n === 1 ? one : many}`;
}

function named(text) {
  return text === "" ? "(empty label)" : text;
}

/** A label on one line of at most so many characters, for charts and options. */
function short(text, length) {
  const line = named(text.slice(0, 4 * length).replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, " "));
  const marks = Array.from(line);
  return marks.length > length ? `${marks.slice(0, length - 1).join("")}…` : line;
}

function numeric(x) {
  return x === "inf" ? Infinity : x === "-inf" ? -Infinity : x;
}
