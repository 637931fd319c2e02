import { linkTo } from "../data/address.ts";
import { Time } from "./time.tsx";
import ui from "./ui.module.css";
import { LinkOut, TextWithLinks, webAddress } from "./web-address.tsx";

/** The text of a value of any shape. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(valueText).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Returns the moment that a text names, as RFC 3339 writes it; undefined: it is another text. */
export function momentOf(value: unknown): number | undefined {
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i.test(value))
    return undefined;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? undefined : ms;
}

interface FactsProps {
  readonly title: string;
  readonly values: Readonly<Record<string, unknown>>;
  readonly folded?: boolean;
  /** With it each value leads to the events that have it, and to those without it. */
  readonly prefix?: string;
}

/** Keys with their values, all as text; a value that is a web address leads there, and one that is a moment is shown as such. */
export function Facts({ title, values, folded, prefix }: FactsProps) {
  const keys = Object.keys(values).sort();
  if (keys.length === 0) return null;
  const list = (
    <dl class={ui.facts}>
      {keys.map((key) => {
        const value = values[key];
        const address = webAddress(value);
        const moment = momentOf(value);
        return (
          <div key={key} class={ui.fact}>
            <dt>{key}</dt>
            <dd>
              {address !== undefined ? (
                <LinkOut href={address} text={String(value)} />
              ) : typeof value === "string" && /https?:\/\//i.test(value) ? (
                <TextWithLinks text={value} />
              ) : moment !== undefined ? (
                <Time at={moment} />
              ) : prefix !== undefined && typeof value === "string" ? (
                <a href={eventsWithLabel(prefix + key, value)}>{value}</a>
              ) : (
                valueText(value)
              )}
              {prefix !== undefined && typeof value === "string" && (
                <span class={ui.narrowing}>
                  <a href={eventsWithLabel(prefix + key, value)} aria-label={`Events with ${key}=${value}`}>
                    +
                  </a>
                  <a href={eventsWithoutLabel(prefix + key, value)} aria-label={`Events without ${key}=${value}`}>
                    −
                  </a>
                </span>
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

const eventsWith = (where: string) => linkTo(["events"], { where, status: "any" });

/** Returns the link to the events whose field has this value. */
export const eventsWithLabel = (field: string, value: string) => eventsWith(filterText(field, value));

/** Returns the link to the events whose field has another value, or none. */
export const eventsWithoutLabel = (field: string, value: string) =>
  eventsWith(`{"not":{"clause":${filterText(field, value)}}}`);
