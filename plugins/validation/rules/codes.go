package rules

import (
	"embed"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

//go:embed codes/*.txtar
var codeFiles embed.FS

// Codes are what Check finds, sorted by id.
func Codes() []finding.Code { return finding.ReadCodes(codeFiles, "codes") }
