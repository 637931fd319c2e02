/** The address that a text is, of a page that a browser opens; undefined for any other text, so that no script is ever one. */
export function webAddress(value: unknown): string | undefined {
  if (typeof value !== "string" || !/^https?:\/\//i.test(value)) return undefined;
  return URL.canParse(value) ? new URL(value).href : undefined;
}

/** A link out of the console, to a page that neither learns where it was opened nor gets hold of this one. */
export function LinkOut({ href, text, class: look }: { href: string; text: string; class?: string | undefined }) {
  return (
    <a href={href} class={look} target="_blank" rel="noreferrer noopener">
      {text}
      <span aria-hidden="true"> ↗</span>
    </a>
  );
}

/** A text whose web addresses are links. */
export function TextWithLinks({ text }: { text: string }) {
  const parts = text.split(/(https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}])/i);
  return parts.map((part, at) => {
    const href = at % 2 === 1 ? webAddress(part) : undefined;
    return href === undefined ? part : <LinkOut key={String(at)} href={href} text={part} />;
  });
}
