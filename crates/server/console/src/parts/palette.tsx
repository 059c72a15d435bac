// Search: pages, limits and queues by name, and any call by its id.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import type { LimitPage, QueuePage } from "../api/shapes";
import { idIn } from "../format";
import { opened } from "../keys";
import { useLive } from "../live";
import { PAGES } from "../pages";
import { href } from "../route";

interface Found {
  kind: string;
  name: string;
  href: string;
}

/** The names of limits and queues, or as many of them as are read. */
interface Names {
  found: Found[];
  isAll: boolean;
}

const NONE: Names = { found: [], isAll: true };
const NAMES_MAX = 1_000;
const SHOWN_MAX = 12;
/** Names are read once while it is open. */
const ONCE_MS = 60_000;

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const names = useLive(readNames, ONCE_MS, []).data ?? NONE;
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const found = useMemo(() => matches(text.trim(), names), [text, names]);
  const at = Math.min(chosen, Math.max(0, found.length - 1));

  const keyed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setChosen((at + step + found.length) % Math.max(1, found.length));
    else if (event.key === "Enter" && found[at]) leave(found[at].href);
    else return;
    event.preventDefault();
  };
  return (
    <dialog class="dialog palette" ref={dialog} onClose={() => opened.change("search", null)} aria-label="Search">
      <input
        role="combobox"
        aria-expanded="true"
        aria-label="Search limits, queues, calls and pages"
        aria-controls="found"
        aria-activedescendant={found[at] ? `found-${at}` : undefined}
        placeholder="A limit, a queue, a page, or the id of a call"
        autofocus
        value={text}
        onInput={(event) => (setText(event.currentTarget.value), setChosen(0))}
        onKeyDown={keyed}
      />
      <ul id="found" role="listbox" aria-label="Found">
        {found.map((one, index) => (
          <li id={`found-${index}`} role="option" aria-selected={index === at}>
            <a href={one.href} tabIndex={-1} onClick={() => opened.set(null)}>
              <small>{one.kind}</small> {one.name}
            </a>
          </li>
        ))}
        {found.length === 0 && <li class="none">Nothing is called like that.</li>}
      </ul>
    </dialog>
  );
}

function leave(to: string): void {
  location.hash = to;
  opened.set(null);
}

async function readNames(signal: AbortSignal): Promise<Names> {
  const [limits, queues] = await Promise.all([
    get<LimitPage>(`/v1/limits?limit=${NAMES_MAX}`, signal),
    get<QueuePage>(`/v1/queues?limit=${NAMES_MAX}`, signal).catch((): QueuePage => ({ queues: [] })),
  ]);
  const found = [
    ...limits.limits.map(({ name }) => ({ kind: "limit", name, href: href("limits", [name]) })),
    ...queues.queues.map(({ name }) => ({ kind: "queue", name, href: href("queues", [name]) })),
  ];
  return { found, isAll: limits.next === undefined && queues.next === undefined };
}

function matches(text: string, names: Names): Found[] {
  const pages = PAGES.map(({ id, title, alias }) => ({
    kind: "page",
    name: alias ? `${title} (${alias})` : title,
    href: href(id),
  }));
  if (!text) return pages;
  const sought = text.toLowerCase();
  const found = [...names.found, ...pages].filter((one) => one.name.toLowerCase().includes(sought));
  found.sort(
    (a, b) => Number(b.name.toLowerCase().startsWith(sought)) - Number(a.name.toLowerCase().startsWith(sought)),
  );
  const id = idIn(text);
  const call = /^\d+$/.test(id) ? [{ kind: "call", name: id, href: href("calls", [id]) }] : [];
  return [...call, ...found.slice(0, SHOWN_MAX), ...unlisted(text, names)];
}

/** Those that may be called so and are not among the names that were read. */
function unlisted(text: string, { isAll, found }: Names): Found[] {
  if (isAll) return [];
  const kinds = [
    { kind: "limit", page: "limits" },
    { kind: "queue", page: "queues" },
  ];
  return kinds
    .filter(({ kind }) => !found.some((one) => one.kind === kind && one.name === text))
    .map(({ kind, page }) => ({ kind, name: text, href: href(page, [text]) }));
}
