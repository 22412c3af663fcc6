// Which items a matrix or a graph shows: the best, or, where those were hardly compared, the most compared.

const PICKS = [["best", "the best"], ["most", "the most compared"]];

/** An order of items (codes, the best first) and how many pairs touch each. */
class Picking {
  constructor(order, pairs, items) {
    this.order = order;
    this.items = items;
    this.first = 0;
    this.touched = new Map();
    for (const code of pairs.flat()) this.touched.set(code, (this.touched.get(code) ?? 0) + 1);
    const place = new Map(order.map((code, at) => [code, at]));
    const inside = pairs.filter((pair) => pair.every((code) => place.get(code) < items)).length;
    this.how = inside >= Math.min(items, pairs.length) ? "best" : "most";
  }

  /** Places in the order, ascending, of the items that are shown. */
  get places() {
    const all = this.order.map((_, at) => at);
    const touched = (at) => this.touched.get(this.order[at]) ?? 0;
    if (this.how === "most") all.sort((a, b) => touched(b) - touched(a) || a - b);
    return all.slice(this.first, this.first + this.items).sort((a, b) => a - b);
  }

  get said() {
    return PICKS.find(([how]) => how === this.how)[1];
  }

  /** Controls: which items, how many, and after how many of them. */
  controls(sizes, changed) {
    const change = (name, read) => (value) => {
      this[name] = read(value);
      changed();
    };
    const total = this.order.length;
    const skips = Array.from({ length: Math.ceil(total / 10) }, (_, i) => [10 * i, 10 * i + 1]);
    const asked = [choice("Items", PICKS, this.how, change("how", String)), choice("How many", sizes.map((n) => [n, n]), this.items, change("items", Number))];
    if (skips.length > 1) asked.push(choice("from no.", skips, this.first, change("first", Number)));
    return asked;
  }
}

/** Numbers of items to choose from, up to the most that can be read. */
function sizesUpTo(total, most) {
  return [...new Set([10, 20, 30].filter((n) => n < total && n < most).concat(Math.min(total, most)))];
}
