import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { address, setParameters } from "../data/address.ts";
import type { Failure } from "../data/calls.ts";
import type { List } from "../data/list.ts";
import { useWayBack } from "../data/way-back.ts";
import { useAskAgain } from "./ask-again.ts";
import type { Column } from "./column.ts";
import { More } from "./more.tsx";
import { narrow } from "./narrow.ts";
import { Empty, Problem } from "./problem.tsx";
import { ScreenHead } from "./screen-head.tsx";
import { sorted, sortHere } from "./sort.ts";
import { Table } from "./table.tsx";
import { TextFilter } from "./text-filters.tsx";
import ui from "./ui.module.css";

interface Shared<T> {
  readonly title: string;
  readonly list: List<T>;
  /** Words for one row and for many. Absent: "in all". */
  readonly counted?: readonly [one: string, many: string];
  /** Label of the filter by text. Absent: there is none. */
  readonly filter?: string;
  /** Tells whether a row passes the filter by text, where the page looks for it and not the server. */
  passes?: (row: T) => boolean;
  readonly tools?: ComponentChildren;
  /** A list that does not follow changes can be read again. */
  readonly refresh?: boolean;
  /** Rows change by themselves: the list is read again as the present moves, while its first page is all that is loaded. */
  readonly follows?: boolean;
  /** The link to the form of a new one. Absent: nothing can be made. */
  readonly make?: readonly [label: string, href: string] | false;
  /** Titles of a list without rows: of an empty one, and of one whose rows all fail the filters. */
  readonly none: string;
  readonly noMatch?: string;
  readonly about?: ComponentChildren;
  /** A failure beside those of the list. */
  readonly failure?: Failure | undefined;
  /** Below the head. */
  readonly above?: ComponentChildren;
  readonly children?: ComponentChildren;
}

interface Tabled<T> {
  /** Name of the table. Absent: the title. */
  readonly label?: string;
  readonly columns: readonly Column<T>[];
  rowKey(row: T): string;
  /** Returns the address that a row leads to. */
  hrefOf(row: T): string;
  tone?: (row: T) => string;
  /** Gets whether a person reads. */
  readonly reading?: Signal<boolean>;
  readonly draw?: undefined;
}

interface Drawn<T> {
  /** Draws the rows where no table does. */
  draw(rows: readonly T[]): ComponentChildren;
}

type ListScreenProps<T> = Shared<T> & (Tabled<T> | Drawn<T>);

/** The screen of a list: its head with how many there are, its filters and what can be made, and its rows or why there are none. */
export function ListScreen<T>(props: ListScreenProps<T>) {
  const { title, list, filter, passes, tools, refresh, make, failure, above, children } = props;
  const { rows: all, total, again, later } = list;
  useWayBack(title);
  useAskAgain(again, props.follows === true && !later.loaded);
  const rows = passes === undefined ? all : all.filter(passes);
  const filters = (filter || tools) && (
    <>
      {filter && <TextFilter name="text" label={filter} />}
      {tools}
    </>
  );
  const given = [...address.value.parameters.keys()].filter((name) => !displayed.has(name));
  const filtered = all.length > rows.length || (passes === undefined && given.length > 0);
  return (
    <div class={ui.screen}>
      <ScreenHead
        title={title}
        count={countText(list, props)}
        tools={
          <>
            {narrow.value && filters ? <More label="Filters">{filters}</More> : filters}
            {refresh && (
              <button type="button" onClick={again}>
                Refresh
              </button>
            )}
            {make && (
              <a class={`${ui.button} ${ui.primary}`} href={make[1]}>
                {make[0]}
              </a>
            )}
          </>
        }
      />
      <Problem failure={list.failure ?? failure} {...(list.failure && { again })} />
      <Problem failure={later.failure} again={list.moreAgain} />
      {above}
      {rows.length === 0 && total !== undefined ? (
        <Empty title={filtered ? (props.noMatch ?? props.none) : props.none}>{props.about}</Empty>
      ) : (
        <Rows {...props} rows={rows} total={rows.length < all.length ? rows.length : total} />
      )}
      {children}
    </div>
  );
}

type RowsProps<T> = ListScreenProps<T> & { readonly rows: readonly T[]; readonly total: number | undefined };

function Rows<T>(props: RowsProps<T>) {
  const { rows, total, list } = props;
  if (props.draw) return props.draw(rows);
  const { label = props.title, columns, rowKey, hrefOf, tone, reading } = props;
  const sort = sortHere();
  // Of a part of the rows the first ones are not the first of all.
  const whole = list.total !== undefined && list.later.next === "";
  return (
    <Table
      label={label}
      rows={whole ? sorted(rows, columns, sort) : rows}
      columns={columns}
      {...(whole && {
        ...(sort && { sort }),
        sortable: columns.filter(({ sort: by }) => by !== undefined).map(({ key }) => key),
        sortBy: (key: string) => setParameters({ sort: sort?.key === key && !sort.descending ? `-${key}` : key }),
      })}
      rowKey={rowKey}
      hrefOf={hrefOf}
      total={total ?? rows.length}
      more={list.more}
      {...(tone && { tone })}
      {...(reading && { reading })}
    />
  );
}

/** Parameters that say what is shown of a list, not which rows it has. */
const displayed: ReadonlySet<string> = new Set(["sort", "open", "weeks"]);

function countText(
  { total, failure, loading }: List<unknown>,
  { counted, follows = false }: Pick<Shared<unknown>, "counted" | "follows">,
): string {
  // An empty list that is read again and again does not flicker.
  if (total === undefined || (loading && total === 0 && !follows)) return failure === undefined ? "Loading…" : "";
  const number = total.toLocaleString("en");
  return counted === undefined ? `${number} in all` : `${number} ${counted[total === 1 ? 0 : 1]}`;
}
