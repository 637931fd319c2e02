import { type ComponentChildren, options } from "preact";

/** Characters that change the direction in which a text is read: what follows them may look like another text. */
const directions = /[\u202a-\u202e\u2066-\u2069]/g;

/** A text whose marks of direction are shown as `[U+202E]`, as messages show them. */
export const marked = (text: string): string =>
  text.replace(directions, (mark) => `[U+${mark.charCodeAt(0).toString(16).toUpperCase()}]`);

function markedChildren(children: ComponentChildren): ComponentChildren {
  if (typeof children === "string") return marked(children);
  return Array.isArray(children) ? children.map(markedChildren) : children;
}

/** Shows marks of direction in every text that is drawn from now on; what is in fields stays as it is. */
export function markTexts(): void {
  const before = options.vnode;
  options.vnode = (vnode) => {
    if (typeof vnode.type === "string") {
      const props = vnode.props as { children?: ComponentChildren; title?: unknown };
      if (props.children !== undefined && vnode.type !== "textarea") props.children = markedChildren(props.children);
      if (typeof props.title === "string") props.title = marked(props.title);
    }
    before?.(vnode);
  };
}
