import { linkTo } from "../data/address.ts";
import ui from "./ui.module.css";

/** The text of a value of any shape. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(valueText).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

interface FactsProps {
  readonly title: string;
  readonly values: Readonly<Record<string, unknown>>;
  readonly folded?: boolean;
  /** With it each value leads to the events that have it. */
  readonly prefix?: string;
}

/** The address that a text is, of a page that a browser opens; undefined for any other text. */
function webAddress(value: unknown): string | undefined {
  if (typeof value !== "string" || !/^https?:\/\//i.test(value)) return undefined;
  return URL.canParse(value) ? new URL(value).href : undefined;
}

/** Keys with their values, all as text; a value that is a web address has a link to it, too. */
export function Facts({ title, values, folded, prefix }: FactsProps) {
  const keys = Object.keys(values).sort();
  if (keys.length === 0) return null;
  const list = (
    <dl class={ui.facts}>
      {keys.map((key) => {
        const value = values[key];
        const address = webAddress(value);
        return (
          <div key={key} class={ui.fact}>
            <dt>{key}</dt>
            <dd>
              {prefix !== undefined && typeof value === "string" ? (
                <a href={linkTo(["events"], { where: filterText(prefix + key, value), status: "any" })}>{value}</a>
              ) : (
                valueText(value)
              )}
              {address !== undefined && (
                <>
                  {" "}
                  <a href={address} target="_blank" rel="noreferrer" aria-label={`Open ${address}`}>
                    ↗
                  </a>
                </>
              )}
            </dd>
          </div>
        );
      })}
    </dl>
  );
  if (!folded) {
    return (
      <div class={ui.factGroup}>
        <h3>{title}</h3>
        {list}
      </div>
    );
  }
  return (
    <details class={ui.factGroup}>
      <summary>
        {title} ({keys.length})
      </summary>
      {list}
    </details>
  );
}

const filterText = (field: string, value: string) =>
  JSON.stringify({ filter: { field, operation: "OP_EQUALS", value } });
