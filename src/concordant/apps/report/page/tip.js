// What a chart says under the pointer: an element, because a text would be read as markup.

function tip(title, pairs) {
  const rows = pairs.flatMap(([term, said]) => [make("dt", {}, term), make("dd", {}, said)]);
  return make("div", { class: "tip" }, make("strong", {}, make("bdi", {}, short(title, 80))), make("dl", {}, ...rows));
}

function tooltip(colour, say) {
  return {
    trigger: "item",
    confine: true,
    transitionDuration: 0,
    backgroundColor: colour.paper,
    borderColor: colour.soft,
    borderWidth: 1,
    padding: 8,
    textStyle: { color: colour.ink, fontSize: 13 },
    formatter: (point) => say(point) ?? "",
  };
}
