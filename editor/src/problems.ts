/** Describe errors to the user, with the next step. */

import * as vscode from "vscode";
import { ApiError } from "./api";
import { HAS_PROGRAMS } from "./host";

/** Return true if no server answers at the address. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof ApiError && error.code === "UNREACHABLE";
}

export function problemText(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  if (error.code === "UNREACHABLE" && !HAS_PROGRAMS) {
    return vscode.l10n.t("Context Registry does not answer. In a browser it must allow this editor: CTXR_ALLOWED_ORIGINS={0}", globalThis.origin);
  }
  if (error.code === "UNREACHABLE") {
    return vscode.l10n.t("Context Registry does not answer. Start it with: ctxr up");
  }
  if (error.code === "UNAUTHORIZED") {
    return vscode.l10n.t("Context Registry requires a token. Create one with `ctxr token create`, and enter it with the command Set Token.");
  }
  return error.details ? `${error.message} ${error.details}` : error.message;
}

/** Run a command; show its error with a button that fixes it, if there is one. */
export async function showingErrors(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const setToken = vscode.l10n.t("Set Token");
    const steps = error instanceof ApiError && error.code === "UNAUTHORIZED" ? [setToken] : [];
    const chosen = await vscode.window.showErrorMessage(problemText(error), ...steps);
    if (chosen === setToken) await vscode.commands.executeCommand("contextRegistry.setToken");
  }
}
