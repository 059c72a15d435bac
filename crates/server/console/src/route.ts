// Where the reader is: a page, names behind it, and filters, all in the address behind the `#`.
import { Store } from "./store";

export interface Route {
  page: string;
  names: string[];
  filters: URLSearchParams;
}

export const route = new Store<Route>(parse(location.hash));

addEventListener("hashchange", () => route.set(parse(location.hash)));

/** The address of a page; filters that are empty are left out. */
export function href(page: string, names: string[] = [], filters: Record<string, string | undefined> = {}): string {
  const given = Object.entries(filters).filter((entry): entry is [string, string] => !!entry[1]);
  const text = new URLSearchParams(given).toString();
  const path = [page, ...names].map(encodeURIComponent).join("/");
  return `#/${path}${text ? `?${text}` : ""}`;
}

export function go(page: string, names: string[] = [], filters: Record<string, string | undefined> = {}): void {
  location.hash = href(page, names, filters);
}

/** Changes filters of the page that is shown; nothing to go back to is left. */
export function refine(changed: Record<string, string | undefined>): void {
  const { page, names, filters } = parse(location.hash);
  // Who went elsewhere a moment ago stays there: the page hears of it after what it was doing.
  if (href(page, names) !== href(route.value.page, route.value.names)) return;
  history.replaceState(null, "", href(page, names, { ...Object.fromEntries(filters), ...changed }));
  route.set(parse(location.hash));
}

function parse(hash: string): Route {
  const [path = "", filters = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [page = "", ...names] = path.split("/").map(decoded);
  return { page: page || "overview", names, filters: new URLSearchParams(filters) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
