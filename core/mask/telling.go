package mask

import "github.com/coxswain-mesh/coxswain/sdk/redact"

// Telling reports whether a name, such as that of a field or a variable, says that what it names is
// secret.
func Telling(name string) bool { return redact.Telling(name) }
