// Elements of the page. Text only ever becomes a text node: nothing here, or anywhere, reads text as markup.

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

function on(node, event, act) {
  node.addEventListener(event, act);
  return node;
}

function bodyOf(section) {
  return document.querySelector(`#${section} .body`);
}

let made = 0;

function freshId(word) {
  made += 1;
  return `${word}-${made}`;
}

/** A select with its label; choices are [value, text]. */
function choice(text, choices, chosen, act) {
  const id = freshId("choice");
  const options = choices.map(([value, shown]) => make("option", { value }, String(shown)));
  const select = make("select", { id }, ...options);
  select.value = String(chosen);
  on(select, "change", () => act(select.value));
  return make("span", { class: "control" }, make("label", { for: id }, text), select);
}

function paragraphs(lines, kind = "") {
  return lines.map((line) => make("p", { class: kind }, line));
}

/** Why a section has nothing to show, in the place of all that it would say. */
function absent(section, otherwise) {
  const said = report.absent?.[section] || otherwise;
  const sentence = said[0].toUpperCase() + said.slice(1) + (/[.!?]$/.test(said) ? "" : ".");
  const lead = document.querySelector(`#${section} .lead`);
  if (lead) lead.hidden = true;
  bodyOf(section).append(...paragraphs([sentence], "absent"));
}

/** How numbers came about, for who wants to know. */
function explained(text) {
  if (!text) return [];
  return [make("details", { class: "notes" }, make("summary", {}, "How this is measured"), make("p", {}, text))];
}

function list(lines, kind = "") {
  return make("ul", { class: kind }, ...lines.map((line) => make("li", {}, line)));
}

/** Pairs of a term and what is said of it. */
function facts(pairs, kind = "") {
  const each = pairs.map(([term, said]) => make("div", {}, make("dt", {}, term), make("dd", {}, said)));
  return make("dl", { class: `figures ${kind}` }, ...each);
}

/** The label of an item as an element of its own direction, however long. */
function labelled(text) {
  return make("bdi", { class: text === "" ? "label empty" : "label", title: text.length > 60 ? text : null }, named(text));
}
