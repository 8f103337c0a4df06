/** How exactly the time of the last use of a stored response is recorded. */
export const cacheTouchedSeconds = 60;
