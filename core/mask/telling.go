package mask

import "regexp"

var telling = regexp.MustCompile(`(?i)(passw(or)?d|passphrase|secret|token|credential|api[-_]?key|private[-_]?key|access[-_]?key|^key$|^auth$|authorization|dsn$)`)

// Telling reports whether a name, such as that of a field or a variable, says that what it names is
// secret.
func Telling(name string) bool { return telling.MatchString(name) }
