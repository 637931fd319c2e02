import { Fragment } from "preact";
import { linkTo } from "../data/address.ts";
import ui from "../ui/ui.module.css";

const namesMax = 50;

/** The ways to the rules that use something, or `none` where there are none. */
export function RuleLinks({ names, none }: { names: readonly string[]; none: string }) {
  if (names.length === 0) return <span class={ui.quiet}>{none}</span>;
  return (
    <>
      {names.slice(0, namesMax).map((name, at) => (
        <Fragment key={name}>
          {at > 0 && ", "}
          <a href={linkTo(["rules", "rules", name])}>{name}</a>
        </Fragment>
      ))}
      {names.length > namesMax && <span class={ui.quiet}> and {names.length - namesMax} more</span>}
    </>
  );
}
