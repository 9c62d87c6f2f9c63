package dns

import "github.com/coxswain-mesh/coxswain/plugins/internal/strict"

func parse(config []byte) (Config, error) { return strict.Parse(config, defaults()) }
