/** Format times for people. */

const STEPS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** Return the age, such as "3 hr. ago"; empty for an invalid time. */
export function ago(time: string, language: string, now = Date.now()): string {
  const seconds = (now - Date.parse(time)) / 1_000;
  if (Number.isNaN(seconds)) return "";
  const words = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
  const step = STEPS.find(([, size]) => seconds >= size);
  return step ? words.format(-Math.floor(seconds / step[1]), step[0]) : words.format(0, "second");
}

/** Return the day of a time in the reader's zone, such as "Fri, Oct 24, 2025". */
export function dayOf(time: string, language: string, timeZone?: string): string {
  return new Date(time).toLocaleDateString(language, { weekday: "short", year: "numeric", month: "short", day: "numeric", timeZone });
}

/** Return a time in the reader's zone, with the zone: an editor elsewhere, such as in a container, may have another one. */
export function local(time: string, language: string, timeZone?: string): string {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? time : at.toLocaleString(language, { dateStyle: "medium", timeStyle: "long", timeZone });
}
