// Which query is shown: a select, with a field to find one where there are many.

const MANY = 12;

function drawChooser() {
  const place = document.getElementById("chooser");
  const views = report.views;
  if (views.length < 2) {
    place.hidden = true;
    return;
  }
  const id = "view";
  const select = make("select", { id });
  const said = make("span", { class: "status", role: "status" });
  on(select, "change", () => choose(Number(select.value), select, said));
  place.append(make("label", { for: id }, "Query"), select);
  if (views.length > MANY) place.append(viewFinder(select, said));
  place.append(viewTurner("Previous query", "‹", -1, select, said), viewTurner("Next query", "›", 1, select, said), said);
  offer(select, "");
}

function choose(index, select, said) {
  select.value = String(index);
  const view = report.views[index];
  said.textContent = `${plural(view.judgments, "judgment")}, ${plural(view.ranking.item.length, "item")}`;
  if (index !== state.view) chooseView(index);
}

/** Fill the select with the views whose name holds what is looked for; the one shown stays among them. */
function offer(select, wanted) {
  const options = [];
  report.views.forEach((view, at) => {
    if (at === state.view || view.name.toLowerCase().includes(wanted)) {
      options.push(make("option", { value: at }, short(view.name, 60)));
    }
  });
  select.replaceChildren(...options);
  select.value = String(state.view);
  return options.map((option) => Number(option.value));
}

function viewFinder(select, said) {
  const id = "find-view";
  const input = make("input", { id, type: "search", placeholder: "name", autocomplete: "off", spellcheck: "false" });
  on(input, "input", () => {
    const wanted = input.value.trim().toLowerCase();
    const found = offer(select, wanted).filter((at) => report.views[at].name.toLowerCase().includes(wanted));
    said.textContent = `${plural(found.length, "query", "queries")} found`;
    input.dataset.first = found.length ? String(found[0]) : "";
  });
  on(input, "keydown", (event) => {
    if (event.key === "Enter" && input.dataset.first) choose(Number(input.dataset.first), select, said);
  });
  return make("span", { class: "control" }, make("label", { for: id }, "Find"), input);
}

function viewTurner(text, sign, step, select, said) {
  const button = make("button", { type: "button", "aria-label": text, title: text }, sign);
  return on(button, "click", () => {
    const many = report.views.length;
    const next = (state.view + step + many) % many;
    offer(select, "");
    choose(next, select, said);
  });
}
