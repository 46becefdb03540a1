/** The parts of the editor's API that the lists use, for tests without an editor. */

export class EventEmitter<Value> {
  private readonly listeners: ((value: Value) => void)[] = [];
  readonly event = (listener: (value: Value) => void): void => void this.listeners.push(listener);
  fire(value: Value): void {
    for (const listener of this.listeners) listener(value);
  }
}

export enum TreeItemCollapsibleState {
  None,
  Collapsed,
  Expanded,
}

export class TreeItem {
  constructor(
    readonly label: string,
    readonly collapsibleState = TreeItemCollapsibleState.None,
  ) {}
}

export class ThemeIcon {
  constructor(readonly id: string) {}
}

export const env = { language: "en" };
export const l10n = {
  t: (text: string, ...values: unknown[]): string => text.replace(/\{(\d)\}/g, (_, index) => String(values[Number(index)])),
};
