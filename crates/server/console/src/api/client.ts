// The one way to the API: a request with its token, and problems as errors that say what to do.
import { isTokenWanted, token } from "../session";

/** One request, as data: it can be shown before it is sent. */
export interface Request {
  method: "GET" | "PUT" | "POST" | "DELETE";
  path: string;
  body?: unknown;
}

/** What the server said is wrong, as RFC 9457 has it; with the status 0, why it cannot be asked at all. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
  ) {
    super(detail);
  }
}

/** Who the audit log names; with a token, the server adds that token's name. */
const ACTOR = "console";

/** A path whose parts are names: path`/v1/limits/${name}`. Throws if a browser would take one for another place. */
export function path(texts: TemplateStringsArray, ...names: string[]): string {
  return texts.reduce((whole, text, index) => whole + part(names[index - 1] ?? "") + text);
}

/** However they are written, a browser folds these two into the path: what is said of a lane `..` would befall its queue. */
function part(name: string): string {
  if (name === "." || name === "..") {
    const why = `a browser takes the name ${name} for a place in the address`;
    throw new Problem(0, "invalid_path", `${why}: ask from a terminal, with curl --path-as-is`);
  }
  return encodeURIComponent(name);
}

/** A path with a query; what is empty is left out. */
export function query(at: string, fields: Record<string, string | number | undefined>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && value !== "") given.set(name, String(value));
  }
  const text = given.toString();
  return text ? `${at}?${text}` : at;
}

/** Longest look: a connection that died without a word would be waited for for ever. */
const LOOK_MAX_MS = 15_000;

export async function get<T>(at: string, signal?: AbortSignal): Promise<T> {
  return look(at, signal, (response) => response.json() as Promise<T>);
}

export async function getText(at: string, signal?: AbortSignal): Promise<string> {
  return look(at, signal, (response) => response.text());
}

async function look<T>(at: string, signal: AbortSignal | undefined, read: (response: Response) => Promise<T>) {
  const late = AbortSignal.timeout(LOOK_MAX_MS);
  return read(await open({ method: "GET", path: at }, signal ? AbortSignal.any([signal, late]) : late));
}

export async function send<T>(request: Request): Promise<T> {
  return (await open(request)).json() as Promise<T>;
}

/** Sends a request and hands over the answer once its head is there. */
export async function open(request: Request, signal?: AbortSignal, more?: HeadersInit): Promise<Response> {
  const headers = new Headers(more);
  if (token.value) headers.set("authorization", `Bearer ${token.value}`);
  if (request.method !== "GET") headers.set("tollgate-actor", ACTOR);
  if (request.body !== undefined) headers.set("content-type", "application/json");
  const body = request.body === undefined ? null : JSON.stringify(request.body);
  const options: RequestInit = { method: request.method, headers, body, cache: "no-store", credentials: "omit" };
  if (signal) options.signal = signal;
  const shown = token.value;
  const response = await fetch(request.path, options);
  if (response.ok) return response;
  // Another token may have been given meanwhile.
  if (response.status === 401 && shown === token.value) isTokenWanted.set(true);
  throw await problemOf(response);
}

async function problemOf(response: Response): Promise<Problem> {
  const told: unknown = await response.json().catch(() => ({}));
  // QStash's API says it in a word of its own.
  const { code, detail, error } = told as { code?: string; detail?: string; error?: string };
  return new Problem(response.status, code ?? "unknown", detail ?? error ?? `the server answered ${response.status}`);
}

/** The same request for a terminal. */
export function asCurl(request: Request): string {
  const parts = ["curl"];
  if (request.method !== "GET") parts.push(`-X ${request.method}`);
  parts.push(quoted(location.origin + request.path));
  if (token.value) parts.push(`-H "authorization: Bearer $TOLLGATE_TOKEN"`);
  if (request.body !== undefined) {
    parts.push(`-H 'content-type: application/json' -d ${quoted(JSON.stringify(request.body))}`);
  }
  return parts.join(" ");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
