import { linkTo } from "../frame/address.ts";

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

/** Keys with their values, all as text. */
export function Facts({ title, values, folded, prefix }: FactsProps) {
  const keys = Object.keys(values).sort();
  if (keys.length === 0) return null;
  const list = (
    <dl class="facts">
      {keys.map((key) => {
        const value = values[key];
        return (
          <div key={key} class="fact">
            <dt>{key}</dt>
            <dd>
              {prefix !== undefined && typeof value === "string" ? (
                <a href={linkTo(["events"], { where: filterText(prefix + key, value), status: "any" })}>{value}</a>
              ) : (
                valueText(value)
              )}
            </dd>
          </div>
        );
      })}
    </dl>
  );
  if (!folded) {
    return (
      <div class="fact-group">
        <h3>{title}</h3>
        {list}
      </div>
    );
  }
  return (
    <details class="fact-group">
      <summary>
        {title} ({keys.length})
      </summary>
      {list}
    </details>
  );
}

const filterText = (field: string, value: string) =>
  JSON.stringify({ filter: { field, operation: "OP_EQUALS", value } });
