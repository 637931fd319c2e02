// The reference at /docs: Swagger UI with a search over everything that an operation says of itself.

/** Operations whose tag, path, method or words hold every word that is searched for. */
function opsFilter(taggedOperations, phrase) {
  const words = phrase.toLowerCase().split(/\s+/);
  return taggedOperations
    .map((tag, name) =>
      tag.update("operations", (operations) =>
        operations.filter((operation) => {
          const told = ["summary", "description", "operationId"].map((key) => operation.getIn(["operation", key]));
          const text = [name, operation.get("method"), operation.get("path"), ...told].join(" ").toLowerCase();
          return words.every((word) => text.includes(word));
        }),
      ),
    )
    .filter((tag) => tag.get("operations").size > 0);
}

/** The parts that a newcomer needs first. */
const firstTags = ["Data receiver", "Event query", "Event management"];
const dayMs = 86_400_000;
/** The day of the examples, which is moved to yesterday: what was sent since then is found by them. */
const exampleDayMs = Date.UTC(2026, 0, 1);
const movedMs = (Math.floor(Date.now() / dayMs) - 1) * dayMs - exampleDayMs;

/** An example with its times moved; of a search's `timeRange` the end is moved to an hour from now. */
function current(value, name) {
  if (Array.isArray(value)) return value.map((each) => current(each));
  if (typeof value === "object" && value !== null) {
    const moved = Object.fromEntries(Object.entries(value).map(([key, each]) => [key, current(each, key)]));
    return name === "timeRange" && "end" in moved ? { ...moved, end: Date.now() + dayMs / 24 } : moved;
  }
  const ms = Number(value);
  if (value === "" || !(ms >= exampleDayMs && ms < exampleDayMs + dayMs)) return value;
  return typeof value === "string" ? String(ms + movedMs) : ms + movedMs;
}

/** The document as a newcomer reads it: the first parts first, and examples that are of today. */
function forReaders(spec) {
  const place = ({ name }) => (firstTags.indexOf(name) + firstTags.length + 1) % (firstTags.length + 1);
  for (const operation of Object.values(spec.paths).flatMap((path) => Object.values(path))) {
    for (const content of Object.values(operation.requestBody?.content ?? {}))
      if (content.example !== undefined) content.example = current(content.example);
  }
  return { ...spec, tags: spec.tags.toSorted((a, b) => place(a) - place(b)) };
}

const isKey = (name) => /^(?:service-api-key|authorization)$/i.test(name);

function reference({ React }) {
  return {
    fn: { opsFilter },
    // What holds for all calls stands behind one line, so that the calls are seen at once.
    wrapComponents: {
      InfoContainer: (Original) => (props) =>
        React.createElement(
          "details",
          { className: "wrapper about" },
          React.createElement("summary", null, "What holds for all calls: keys, values, pages, errors"),
          React.createElement(Original, props),
        ),
      // A watch does not end, and the answer is shown at its end.
      execute: (Original) => (props) =>
        props.path.endsWith(":watch")
          ? React.createElement(
              "p",
              { className: "no-execute" },
              "A watch goes on until you end it: call it with curl.",
            )
          : React.createElement(Original, props),
      // The command is copied and shown to others: the key stays out of it.
      curl: (Original) => (props) => {
        const headers = props.request.get("headers");
        const shown = headers?.map?.((value, name) => (isKey(name) ? "$KEY" : value)) ?? headers;
        return React.createElement(Original, { ...props, request: props.request.set("headers", shown) });
      },
    },
    components: {
      FilterContainer: ({ layoutActions }) => {
        // The list is drawn when typing pauses; the field keeps its own text meanwhile.
        let pause;
        const onChange = ({ target }) => {
          clearTimeout(pause);
          pause = setTimeout(() => layoutActions.updateFilter(target.value), 150);
        };
        return React.createElement(
          "div",
          { className: "search wrapper" },
          React.createElement("label", { htmlFor: "search" }, "Search"),
          React.createElement("input", {
            id: "search",
            type: "search",
            placeholder: "events, delete, annotate …  ( / )",
            onChange,
          }),
        );
      },
    },
  };
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", paint);
paint();

document.addEventListener("keydown", (event) => {
  const dialog = document.querySelector(".dialog-ux");
  if (event.key === "Escape" && dialog !== null) {
    dialog.querySelector(".close-modal")?.click();
    document.querySelector(".btn.authorize")?.focus();
  }
  // Tab stays within the dialog.
  if (event.key === "Tab" && dialog !== null) {
    const all = [...dialog.querySelectorAll("button, input, a[href]")].filter((each) => each.offsetParent !== null);
    const [first, last] = [all[0], all.at(-1)];
    const outside = !dialog.contains(document.activeElement);
    if (outside || document.activeElement === (event.shiftKey ? first : last)) {
      event.preventDefault();
      (event.shiftKey ? last : first)?.focus();
    }
  }
  if (event.key === "/" && !event.target.closest("input, textarea, select")) {
    event.preventDefault();
    document.querySelector("#search")?.focus();
  }
});
// The dialog for the key asks for it at once.
document.addEventListener("click", (event) => {
  if (event.target.closest(".btn.authorize, .authorization__btn") === null) return;
  requestAnimationFrame(() => document.querySelector(".dialog-ux input")?.focus());
});

const spec = await (await fetch("/openapi.json")).json();

SwaggerUIBundle({
  spec: forReaders(spec),
  dom_id: "#reference",
  plugins: [reference],
  filter: true,
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
