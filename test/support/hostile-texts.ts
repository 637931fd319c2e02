/** Expressions that once took seconds to compile or compare, or that are the worst within the bounds. */
export const hostileExpressions: readonly string[] = [
  "(?:^|$|^|$|^|$){1000}",
  "(?:a?){31}(?:a?){31}",
  `(?i)[^${"B-\\x{1E943}".repeat(60)}]`,
  `(?i)${"\\pL".repeat(200)}`,
  "^\\pL{990}",
  "(?:.*a.{20}){20}x",
  "(?:a|b)*a(?:a|b){200}!?(?:a|b)*",
  "((((((a*)*)*)*)*)*)*b",
  "(?:a{250}){4}",
  `${"(".repeat(300)}${")".repeat(300)}`,
];

const nested = (depth: number, inner: string) => "{{#members}}".repeat(depth) + inner + "{{/members}}".repeat(depth);

/** Templates that once took seconds to read or render, or that are wrong. */
export const hostileTemplates: readonly string[] = [
  nested(1, "{{{event.labels}}}".repeat(50)),
  nested(6, "{{{event.name}}}"),
  nested(60, "a"),
  "{{#members}}".repeat(80),
  "{{".repeat(400),
  "{{=<% %>=}}".repeat(80),
  "{{{event.name}}}".repeat(60),
  "a{{/members}}",
];
