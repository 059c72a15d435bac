// What pages begin with and are made of: a head with its actions, and panels.
import type { ComponentChildren } from "preact";
import { daytime } from "../format";
import type { Pages } from "../paging";

export function Head({
  title,
  crumb,
  says,
  children,
}: {
  title: ComponentChildren;
  crumb?: ComponentChildren;
  says?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <div class="head">
      <div>
        {crumb && <div class="crumb">{crumb}</div>}
        <h1>{title}</h1>
        {says && <p class="soft">{says}</p>}
      </div>
      {children && <div class="buttons">{children}</div>}
    </div>
  );
}

export function Panel({
  title,
  aside,
  pages,
  children,
}: {
  title: string;
  aside?: ComponentChildren;
  /** The list that it shows. */
  pages?: Pages<unknown>;
  children: ComponentChildren;
}) {
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {pages?.asOf !== undefined && (
          <span class="as-of">
            <small class="number">as of {daytime(pages.asOf)}</small>
            <button type="button" class="quiet" onClick={pages.refresh}>
              Refresh
            </button>
          </span>
        )}
        {aside}
      </header>
      {children}
    </section>
  );
}

/** One of a few ways to look. */
export function Tabs<T extends string>({
  label,
  of,
  chosen,
  choose,
}: {
  label: string;
  of: readonly { id: T; title: string }[];
  chosen: NoInfer<T>;
  choose: (id: NoInfer<T>) => void;
}) {
  return (
    <div class="tabs" role="group" aria-label={label}>
      {of.map(({ id, title }) => (
        <button type="button" aria-pressed={id === chosen} onClick={() => choose(id)}>
          {title}
        </button>
      ))}
    </div>
  );
}

/** A number that recedes when it is zero. */
export function Count({ value, text }: { value: number; text: string }) {
  return <span class={value === 0 ? "zero" : ""}>{text}</span>;
}
