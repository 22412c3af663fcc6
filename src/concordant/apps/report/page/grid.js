// A table that sorts by every column, searches and shows its rows page by page: some thousand rows cost no more than fifty.

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/**
 * sticky: how many columns stay in sight when the rest moves sideways; rule: whether a line is drawn between two rows.
 * columns: {title, value: row → number | text | null, shown: row → text | element, kind: "number" | "text", first: 1 | -1}.
 * rows: how many; search: row → text to search in, or null; sizes: rows a page.
 */
class Grid {
  constructor({ caption, columns, rows, search = null, what = "rows", sizes = [25, 50, 100, 250], sticky = 0, rule = null }) {
    Object.assign(this, { columns, search, what, sticky, rule, told: null });
    this.size = sizes[0];
    this.sizes = sizes;
    this.caption = caption;
    this.build(columns, rows > sizes[0]);
    this.renew(rows);
  }

  build(columns, paged) {
    this.paged = paged || Boolean(this.search);
    this.heads = columns.map((column, at) => this.head(column, at));
    this.body = make("tbody");
    const table = make("table", { class: this.sticky ? `sticky sticky-${this.sticky}` : null }, make("caption", {}, this.caption), make("thead", {}, make("tr", {}, ...this.heads)), this.body);
    this.area = make("div", { class: "scroll", role: "region", "aria-label": this.caption, tabindex: "0" }, table);
    this.status = make("span", { class: "status", role: "status" });
    this.tools = make("div", { class: "tools" });
    this.turns = make("div", { class: "turns" }, this.status);
    if (this.search) this.tools.append(this.finder());
    this.turns.hidden = !this.paged;
    if (this.paged) {
      this.back = this.turner("Previous", -1);
      this.forth = this.turner("Next", 1);
      this.turns.append(this.back, this.forth, this.sizer());
    }
    this.node = make("div", { class: "grid" }, this.tools, this.area, this.turns);
  }

  /** Do something with the rows shown, now and whenever they change. */
  tell(act) {
    this.told = act;
    act(this.shown);
  }

  head(column, at) {
    const button = on(make("button", { type: "button", class: "sort" }, column.title), "click", () => this.sortBy(at));
    return make("th", { scope: "col", class: column.kind === "number" ? "number" : "text", title: column.help }, button);
  }

  finder() {
    const id = freshId("find");
    const input = make("input", { id, type: "search", autocomplete: "off", spellcheck: "false" });
    on(input, "input", () => {
      this.wanted = input.value.trim().toLowerCase();
      this.page = 0;
      this.select();
    });
    return make("span", { class: "control" }, make("label", { for: id }, `Find ${this.what}`), input);
  }

  turner(text, step) {
    return on(make("button", { type: "button" }, text), "click", (event) => {
      if (event.currentTarget.getAttribute("aria-disabled") === "true") return;
      this.page += step;
      this.draw();
    });
  }

  sizer() {
    const choices = this.sizes.map((n) => [n, n]);
    return choice("Rows a page", choices, this.size, (n) => {
      this.page = Math.floor((this.page * this.size) / Number(n));
      this.size = Number(n);
      this.draw();
    });
  }

  /** Start again with other rows, or with some of them left out; what is typed and sorted stays. */
  renew(rows, keep = null) {
    this.rows = rows;
    this.keep = keep;
    this.page = 0;
    this.cached = new Map();
    this.select();
  }

  sortBy(at) {
    const again = this.sorted && this.sorted.at === at;
    this.sorted = { at, way: again ? -this.sorted.way : this.columns[at].first ?? 1 };
    this.page = 0;
    this.select();
  }

  select() {
    const kept = [];
    for (let row = 0; row < this.rows; row += 1) {
      if (this.keep && !this.keep(row)) continue;
      if (this.wanted && !this.lowered(row).includes(this.wanted)) continue;
      kept.push(row);
    }
    this.order = this.sorted ? this.inOrder(kept, this.sorted) : kept;
    this.draw();
  }

  lowered(row) {
    const texts = this.cache("search", () => []);
    texts[row] ??= this.search(row).toLowerCase();
    return texts[row];
  }

  cache(name, make_) {
    if (!this.cached.has(name)) this.cached.set(name, make_());
    return this.cached.get(name);
  }

  /** Rows in the order of a column; unknown values last, equal ones as they came. */
  inOrder(rows, { at, way }) {
    const keys = this.cache(at, () => this.keys(this.columns[at]));
    const last = (row) => keys[row] === null || Number.isNaN(keys[row]);
    return [...rows].sort((a, b) => {
      if (last(a) || last(b)) return Number(last(a)) - Number(last(b));
      return way * (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0) || a - b;
    });
  }

  /** A number for each row that sorts as the column's values do. */
  keys(column) {
    const values = Array.from({ length: this.rows }, (_, row) => column.value(row) ?? null);
    if (column.kind === "number") return values.map(numeric);
    const texts = [...new Set(values)].filter((x) => x !== null).sort((a, b) => collator.compare(a, b) || (a < b ? -1 : 1));
    const place = new Map(texts.map((text, at) => [text, at]));
    return values.map((text) => (text === null ? null : place.get(text)));
  }

  draw() {
    const pages = Math.max(1, Math.ceil(this.order.length / this.size));
    this.page = Math.min(Math.max(this.page, 0), pages - 1);
    const begin = this.page * this.size;
    const shown = this.order.slice(begin, begin + this.size);
    this.shown = shown;
    const ends = (at) => Boolean(this.rule && !this.sorted && at + 1 < shown.length && this.rule(shown[at], shown[at + 1]));
    this.body.replaceChildren(...shown.map((row, at) => this.line(row, ends(at))));
    this.area.scrollTop = 0;
    this.heads.forEach((head, at) => this.mark(head, at));
    this.say(begin, shown.length);
    if (this.back) {
      this.back.setAttribute("aria-disabled", String(this.page === 0));
      this.forth.setAttribute("aria-disabled", String(this.page >= pages - 1));
      for (const one of [this.back, this.forth]) one.hidden = pages === 1;
    }
    if (this.told) this.told(shown);
  }

  line(row, ends = false) {
    const cells = this.columns.map((column, at) => {
      const kind = column.kind === "number" ? "number" : "text";
      const said = column.shown ? column.shown(row) : column.value(row) ?? UNKNOWN;
      return make(column.heading ? "th" : "td", { class: kind, scope: column.heading ? "row" : null }, said);
    });
    return make("tr", { class: ends ? "ends" : null }, ...cells);
  }

  mark(head, at) {
    const way = this.sorted && this.sorted.at === at ? this.sorted.way : 0;
    if (way) head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  }

  say(begin, shown) {
    const all = this.order.length;
    const of = all < this.rows ? `${whole(all)} found of ${plural(this.rows, "row")}` : `${plural(all, "row")}`;
    this.status.textContent = all === 0 ? "Nothing found" : shown === all ? of : `Rows ${whole(begin + 1)}–${whole(begin + shown)} of ${of}`;
  }
}

/** A grid of plain records; columns: [key, title, kind, how a value is shown]. */
function gridOf(caption, records, columns, options = {}) {
  const each = columns.map(([key, title, kind, shown, first]) => ({
    title,
    kind,
    first,
    heading: options.heading === key,
    value: (row) => records[row][key],
    shown: shown ? (row) => shown(records[row][key], records[row]) : null,
  }));
  return new Grid({ caption, columns: each, rows: records.length, ...options });
}
