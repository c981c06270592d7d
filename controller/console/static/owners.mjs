// Whose a job is, for whoever points at it: with the mouse, or by the keyboard's focus.
import { useState } from "./base.mjs";
import { keyPath } from "./api.mjs";
import { useQuery } from "./queries.mjs";

// {job, found, pointing}: `found` has primary and backup of the job that is pointed at. `at`: an instant that has been.
export function useOwners(at = "") {
  const [job, point] = useState("");
  const query = useQuery(job ? `${keyPath(job)}/owners` : null, { at }, { every: 3_600_000 });
  const pointing = (key) => ({
    onMouseEnter: () => point(key),
    onMouseLeave: () => point(""),
    onFocusIn: () => point(key),
    onFocusOut: () => point(""),
  });
  return { job, found: job ? query.data : null, pointing };
}
