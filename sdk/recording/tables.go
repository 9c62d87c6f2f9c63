package recording

import (
	"slices"
	"strings"
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// SecretTables knows the tables whose rows are secrets: those with `secret` in their name, however
// it is written, and those of which a plugin has said so (Ready.secrets). What was said counts for
// all plugins, and for good. Any goroutine may call its methods.
type SecretTables struct {
	mu       sync.Mutex
	declared []string
}

// Declare learns what a plugin says.
func (s *SecretTables) Declare(r *pb.Ready) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, table := range r.Secrets {
		if !slices.Contains(s.declared, table) {
			s.declared = append(s.declared, table)
		}
	}
}

// Has reports whether a table's rows are secrets.
func (s *SecretTables) Has(table string) bool {
	if strings.Contains(strings.ToLower(table), "secret") {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.declared, table)
}
