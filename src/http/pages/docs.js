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

SwaggerUIBundle({
  url: "/openapi.json",
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
