import frameLook from "./frame.module.css";

/** Lines of the icons, on a ground of 16 units, by the names of screens. */
const lines: Readonly<Record<string, string>> = {
  events: "M8 2C5.5 2 4 4 4 6.5V9.5L2.5 11.5H13.5L12 9.5V6.5C12 4 10.5 2 8 2ZM6.5 13.5H9.5",
  entities: "M2 3.5H14V7H2ZM2 9H14V12.5H2ZM4.5 5.2H5M4.5 10.8H5",
  metrics: "M2 13.5H14M2.5 10.5 6 6.5 9 9 13.5 3.5",
  deliveries: "M14 2 7 9M14 2 9.5 14 7 9 2 6.5Z",
  rules: "M2 4H14M2 8H10M2 12H6.5",
  windows: "M8 2A6 6 0 1 1 8 14 6 6 0 1 1 8 2ZM8 4.8V8L10.2 9.8",
  silences: "M8 2C5.5 2 4 4 4 6.5V9.5L2.5 11.5H13.5L12 9.5V6.5C12 4 10.5 2 8 2ZM2 2 14 14",
  settings:
    "M2 4.5H8.5M12 4.5H14M2 11.5H4M7.5 11.5H14M10.2 2.8A1.7 1.7 0 1 1 10.2 6.2 1.7 1.7 0 1 1 10.2 2.8ZM5.8 9.8A1.7 1.7 0 1 1 5.8 13.2 1.7 1.7 0 1 1 5.8 9.8Z",
};

export function ScreenIcon({ name }: { name: string }) {
  return (
    <svg class={frameLook.icon} viewBox="0 0 16 16" aria-hidden="true">
      <path d={lines[name]} />
    </svg>
  );
}

/** The page's own icon, which the document names. */
export function Brand() {
  const { href = "" } = document.querySelector<HTMLLinkElement>("link[rel=icon]") ?? {};
  return (
    <>
      {href !== "" && <img class={frameLook.bell} src={href} alt="" width={24} height={24} />}
      Belfry
    </>
  );
}
