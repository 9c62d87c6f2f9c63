// Package sandbox takes from a plugin's process what no plugin needs, before its program begins: to
// look into other processes, to gain privileges, to end the core; and, where plugins.yaml says so,
// the files of others.
package sandbox

// Rules of one process.
type Rules struct {
	// Unconfined takes nothing away.
	Unconfined bool
	// Files: the process may read what is below Read and the system's programs and libraries, and
	// write what is below Write, and nothing else. ReadAll lets it read everything.
	Files, ReadAll bool
	Read, Write    []string
	// Own are directories and files that are the process's own: it may do anything to them.
	// Programs are files that it may execute.
	Own, Programs []string
}

// Report says what became of Rules.
type Report struct {
	// InForce says what the process may not, in words; Lacking what could not be taken from it, and
	// why.
	InForce, Lacking []string
}

func (r *Report) note(err error, what string) {
	if err == nil {
		r.InForce = append(r.InForce, what)
	} else {
		r.Lacking = append(r.Lacking, what+": "+err.Error())
	}
}
