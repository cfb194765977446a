// Diagnostics: the precision report of a device and of the operators that a session ran on it.
export async function diagnose() { return {}; }
