import { type Attributes, Component, createElement, type FunctionComponent } from "preact";

const differ = (a: object, b: object) =>
  Object.keys(a).length !== Object.keys(b).length ||
  Object.entries(a).some(([name, value]) => value !== (b as Record<string, unknown>)[name]);

/** Draws a component again only when one of its properties changes. preact/compat has this too, among 4 kB that the page needs not. */
export function memo<P extends object>(Drawn: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P) {
      return differ(this.props, next);
    }
    override render() {
      return createElement(Drawn, this.props as P & Attributes);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
