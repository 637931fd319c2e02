import type { DescMethod } from "@bufbuild/protobuf";
import type { ComponentType } from "preact";
import { linkTo } from "../data/address.ts";
import { may } from "../data/session.ts";
import ui from "./ui.module.css";

interface SectionOf {
  readonly label: string;
  readonly Section: ComponentType;
  /** The method that it reads by: only users who may call it see the link. Absent: all users see it. */
  readonly reads?: DescMethod;
}

interface SectionsProps {
  /** The screen's name in addresses; a section is the next part of the path. */
  readonly screen: string;
  readonly sections: Readonly<Record<string, SectionOf>>;
  readonly open: string;
}

/** The sections of a screen, of which one is open. */
export function Sections({ screen, sections, open }: SectionsProps) {
  const Section = sections[open]?.Section;
  return (
    <div class={ui.screen}>
      <nav class={ui.sections} aria-label="Sections">
        {Object.entries(sections)
          .filter(([, { reads }]) => reads === undefined || may(reads))
          .map(([name, { label }]) => (
            <a key={name} href={linkTo([screen, name])} aria-current={name === open ? "page" : undefined}>
              {label}
            </a>
          ))}
      </nav>
      {Section === undefined ? (
        <div class={ui.empty}>
          <h1>There is no such section</h1>
        </div>
      ) : (
        <Section key={open} />
      )}
    </div>
  );
}
