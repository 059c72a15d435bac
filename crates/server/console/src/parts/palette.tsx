// Search: pages, limits and queues by name, and any call by its id.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import type { LimitPage, QueuePage } from "../api/shapes";
import { opened } from "../keys";
import { useLive } from "../live";
import { PAGES } from "../pages";
import { href } from "../route";

interface Found {
  kind: string;
  name: string;
  href: string;
}

const NAMES_MAX = 1_000;
const SHOWN_MAX = 12;
/** Names are read once while it is open. */
const ONCE_MS = 60_000;

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const names = useLive(readNames, ONCE_MS, []).data ?? [];
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

async function readNames(signal: AbortSignal): Promise<Found[]> {
  const [limits, queues] = await Promise.all([
    get<LimitPage>(`/v1/limits?limit=${NAMES_MAX}`, signal),
    get<QueuePage>(`/v1/queues?limit=${NAMES_MAX}`, signal).catch((): QueuePage => ({ queues: [] })),
  ]);
  return [
    ...limits.limits.map(({ name }) => ({ kind: "limit", name, href: href("limits", [name]) })),
    ...queues.queues.map(({ name }) => ({ kind: "queue", name, href: href("queues", [name]) })),
  ];
}

function matches(text: string, names: Found[]): Found[] {
  const pages = PAGES.map(({ id, title, alias }) => ({
    kind: "page",
    name: alias ? `${title} (${alias})` : title,
    href: href(id),
  }));
  if (!text) return pages;
  const sought = text.toLowerCase();
  const found = [...names, ...pages].filter((one) => one.name.toLowerCase().includes(sought));
  found.sort(
    (a, b) => Number(b.name.toLowerCase().startsWith(sought)) - Number(a.name.toLowerCase().startsWith(sought)),
  );
  const call = { kind: "call", name: text, href: href("calls", [text]) };
  return [...(/^\d+$/.test(text) ? [call] : []), ...found, ...(/^\d+$/.test(text) ? [] : [call])].slice(0, SHOWN_MAX);
}
