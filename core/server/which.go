package server

import (
	"os"

	"github.com/coxswain-mesh/coxswain/core/swap/api"
)

// which says which of several cores this is.
func (s *Server) which() api.Core {
	return api.Core{PID: os.Getpid(), Ports: s.ports.addresses(), File: s.cfg.File, Inputs: s.cfg.Words.Inputs}
}
