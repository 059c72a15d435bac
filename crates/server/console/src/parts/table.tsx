// The one table. Long ones draw only the rows in sight, and ask for more when their end comes near.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Column<T> {
  title: string;
  cell(row: T): ComponentChildren;
  /** Numbers stand at the end of their cell. */
  isNumber?: boolean;
  /** Left out on a phone. */
  isExtra?: boolean;
  /** As CSS has it; those without share what is left. */
  width?: string;
}

interface Shown<T> {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  keyOf(row: T): string;
  /** Only rows in sight are drawn, in a box that scrolls. */
  isLong?: boolean;
  /** Called when the end of a long table is near. */
  onEnd?(): void;
  isChosen?(row: T): boolean;
}

/** Every row of a long table is so high, so that one knows where each is; `figures.css` says the same. */
const ROW_PX = 40;
/** Rows drawn beyond the edges, for fast fingers. */
const BEYOND = 12;

export function Table<T>(props: Shown<T>) {
  return props.isLong ? <LongTable {...props} /> : <Whole {...props} rows={props.rows} before={0} after={0} />;
}

function LongTable<T>(props: Shown<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const look = () => {
    const { scrollTop, clientHeight } = box.current ?? { scrollTop: 0, clientHeight: 600 };
    setView((old) =>
      old.top === scrollTop && old.height === clientHeight ? old : { top: scrollTop, height: clientHeight },
    );
  };
  useLayoutEffect(look, [props.rows.length]);
  const first = Math.max(0, Math.floor(view.top / ROW_PX) - BEYOND);
  const last = Math.min(props.rows.length, Math.ceil((view.top + view.height) / ROW_PX) + BEYOND);
  const isNearEnd = last >= props.rows.length - BEYOND;
  useLayoutEffect(() => {
    if (isNearEnd) props.onEnd?.();
  }, [isNearEnd, props.rows.length]);
  return (
    <div class="long" ref={box} onScroll={look} tabIndex={0} role="region" aria-label={props.label}>
      <Whole
        {...props}
        rows={props.rows.slice(first, last)}
        before={first * ROW_PX}
        after={(props.rows.length - last) * ROW_PX}
        place={{ first, of: props.rows.length }}
      />
    </div>
  );
}

interface Drawn {
  before: number;
  after: number;
  /** Which of how many rows these are, if they are not all. */
  place?: { first: number; of: number };
}

function Whole<T>(props: Shown<T> & Drawn) {
  const { label, rows, columns, keyOf, before, after, place, isChosen } = props;
  // The head is the first row.
  const rowIndex = (index: number) => place && place.first + index + 2;
  return (
    <table aria-rowcount={place && place.of + 1}>
      <caption class="unseen">{label}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th scope="col" class={classOf(column)} style={column.width ? { width: column.width } : {}}>
              {column.title || <span class="unseen">Actions</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {before > 0 && <tr aria-hidden="true" style={{ height: `${before}px` }} />}
        {rows.map((row, index) => (
          <tr key={keyOf(row)} class={isChosen?.(row) ? "chosen" : ""} aria-rowindex={rowIndex(index)}>
            {columns.map((column) => (
              <td class={classOf(column)} data-title={column.title}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
        {after > 0 && <tr aria-hidden="true" style={{ height: `${after}px` }} />}
      </tbody>
    </table>
  );
}

function classOf<T>(column: Column<T>): string {
  return `${column.isNumber ? "number end" : ""} ${column.isExtra ? "extra" : ""}`.trim();
}
