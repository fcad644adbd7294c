// What `@tidegate/react` offers.

export { TidegateProvider, useTidegate } from "./context.js";
export { useMutation, type MutationState } from "./mutation.js";
export { useQuery, useSuspenseQuery } from "./query.js";
export { useConnectionStatus } from "./status.js";
