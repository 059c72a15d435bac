// What narrows a list; it stands in the address, so that a list can be sent to others as it is.
import { refine } from "../route";
import { TypedInput } from "./fields";

interface Filter {
  name: string;
  label: string;
  filters: URLSearchParams;
}

export function Choice({ name, label, of, filters }: Filter & { of: readonly string[] }) {
  return (
    <label>
      {label}
      <select value={filters.get(name) ?? ""} onChange={(event) => refine({ [name]: event.currentTarget.value })}>
        <option value="">Any</option>
        {of.map((value) => (
          <option value={value}>{value.replace("_", " ")}</option>
        ))}
      </select>
    </label>
  );
}

export function Text({ name, label, placeholder, filters }: Filter & { placeholder: string }) {
  return (
    <label>
      {label}
      <TypedInput
        value={filters.get(name) ?? ""}
        placeholder={placeholder}
        commit={(value) => refine({ [name]: value.trim() })}
      />
    </label>
  );
}

/** An instant in the reader's own time, kept as the API has it. */
export function Instant({ name, label, filters }: Filter) {
  const at = new Date(filters.get(name) ?? "");
  // What the address says may be no instant: the server tells what is wrong with it.
  const local = Number.isNaN(at.getTime())
    ? ""
    : new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  const commit = (value: string) => refine({ [name]: value ? new Date(value).toISOString() : "" });
  return (
    <label>
      {label}
      <TypedInput kind="datetime-local" value={local} commit={commit} />
    </label>
  );
}
