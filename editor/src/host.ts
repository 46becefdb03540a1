/** True on a desktop, where programs can be started; false in a browser. */

export const HAS_PROGRAMS = typeof process === "object" && Boolean(process.versions?.node);
