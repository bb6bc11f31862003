// Stands in for @grafana/assistant, which the component asks for and does not need.
export const OpenAssistantButton = () => null;
